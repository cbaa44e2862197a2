// SPDX-License-Identifier: Apache-2.0
//
// A model: weights, cache and threads, shared by its sessions. Knows its sessions weakly, so that
// closing it can cancel what they do, and forgotten ones are still collected.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Waste.Native;

namespace Waste
{
    /// <summary>
    /// A model that is open. Members may be called from any number of threads. Disposing it cancels
    /// the work of its sessions and closes them; it may happen at any time, more than once, and
    /// waits a second at most. After it every call throws <see cref="ObjectDisposedException"/>.
    /// </summary>
    public sealed class WasteModel : IDisposable, IAsyncDisposable
    {
        private readonly CallGate gate = new CallGate(nameof(WasteModel));
        private readonly List<WeakReference<Session>> sessions = new List<WeakReference<Session>>();
        private readonly NativeHandle handle;

        private WasteModel(IntPtr address)
        {
            handle = new NativeHandle(address);
            Info = ReadInfo();
            Tokenizer = new Tokenizer(this);
        }

        /// <summary>The library's version, "major.minor.patch".</summary>
        public static string LibraryVersion
        {
            get
            {
                NativeLoader.EnsureLoaded();
                return ReadVersion();
            }
        }

        /// <summary>What the model is.</summary>
        public ModelInfo Info { get; }

        /// <summary>Text to tokens and back.</summary>
        public Tokenizer Tokenizer { get; }

        internal NativeHandle Handle
        {
            get { return handle; }
        }

        /// <summary>What opening would cost, without loading anything. A budget below the floor is
        /// no error here: <see cref="MemoryPlan.Fits"/> says so.</summary>
        /// <exception cref="WasteException">The container cannot be read.</exception>
        public static MemoryPlan Plan(string path, ModelOptions options = null)
        {
            NativeLoader.EnsureLoaded();
            return ReadPlan(Utf8.Required(path, nameof(path)), options);
        }

        /// <summary>Opens a container (a folder). Blocks while shared weights load.</summary>
        /// <param name="path">The container's folder.</param>
        /// <param name="options">Null for the defaults.</param>
        /// <param name="progress">Told how far it is, on this thread, some 50 times a second.
        /// </param>
        /// <param name="cancellationToken">Cancels the open.</param>
        /// <exception cref="WasteException">The container cannot be opened: IO, or one of the
        /// classes <see cref="ModelFormatException"/> and <see cref="RamBudgetException"/>.
        /// </exception>
        /// <exception cref="WasteNativeLoadException">The native library is missing.</exception>
        /// <exception cref="OperationCanceledException">The token cancelled it.</exception>
        public static WasteModel Open(
            string path, ModelOptions options = null, IProgress<LoadProgress> progress = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            cancellationToken.ThrowIfCancellationRequested();
            using (WasteJob job = StartOpen(path, options))
            {
                job.Wait(progress, cancellationToken);
                return Take(job);
            }
        }

        /// <summary>The same without a thread that waits. Progress is reported from a thread of
        /// the pool (or where <see cref="Progress{T}"/> was made).</summary>
        public static async Task<WasteModel> OpenAsync(
            string path, ModelOptions options = null, IProgress<LoadProgress> progress = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            cancellationToken.ThrowIfCancellationRequested();
            using (WasteJob job = StartOpen(path, options))
            {
                await job.WaitAsync(progress, cancellationToken).ConfigureAwait(false);
                return Take(job);
            }
        }

        /// <summary>A chat: messages go through the model's chat format.</summary>
        /// <exception cref="RamBudgetException">No memory is left for another session.</exception>
        /// <exception cref="WasteException">The model has no chat format (Unsupported).
        /// </exception>
        public ChatSession CreateChat(SessionOptions options = null)
        {
            var chat = new ChatSession(this, CreateHandle(options));
            if (options != null && options.System != null)
                chat.Begin(options.System);
            return chat;
        }

        /// <summary>A raw session: tokens and plain text, no chat format.</summary>
        /// <exception cref="RamBudgetException">No memory is left for another session.</exception>
        public Session CreateSession(SessionOptions options = null)
        {
            if (options != null && options.System != null)
                throw new ArgumentException("a raw session has no system message", nameof(options));
            return new Session(this, CreateHandle(options));
        }

        /// <summary>Counters since the model was opened.</summary>
        public WasteStats GetStats()
        {
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
            using (var native = new waste_stats())
            {
                NativeError.Check(WasteNative.waste_model_stats(handle, native, error), error);
                return new WasteStats(native);
            }
        }

        /// <summary>The lines that the model had to say since the last call.</summary>
        public IReadOnlyList<string> ReadLog()
        {
            using (gate.Enter())
                return Log.Read(handle);
        }

        /// <summary>Cancels the answers and evaluations of its sessions, closes them, and frees the
        /// model; waits a second at most for calls inside.</summary>
        public void Dispose()
        {
            if (!gate.Close())
                return;
            Stopwatch since = Stopwatch.StartNew();
            List<Session> open = CancelSessions();
            foreach (Session session in open)
                session.Close(since);
            gate.WaitUntilIdle(since);
            handle.Dispose();
        }

        /// <summary>The same without a thread that waits.</summary>
        public ValueTask DisposeAsync()
        {
            return new ValueTask(CloseAsync());
        }

        internal CallGate.Call Enter()
        {
            return gate.Enter();
        }

        /// <summary>Lists a session of this model; throws once the model is closed.</summary>
        internal void Add(Session session)
        {
            lock (sessions)
            {
                sessions.RemoveAll(known => !known.TryGetTarget(out Session live));
                sessions.Add(new WeakReference<Session>(session));
            }
            if (!gate.IsClosed)
                return;
            session.Dispose();
            throw new ObjectDisposedException(nameof(WasteModel));
        }

        internal void Remove(Session session)
        {
            lock (sessions)
                sessions.RemoveAll(known => !known.TryGetTarget(out Session live) ||
                                            live == session);
        }

        [MethodImpl(MethodImplOptions.NoInlining)] // See NativeLoader.EnsureLoaded.
        private static string ReadVersion()
        {
            return Utf8.Read(buffer => WasteNative.waste_version(buffer, buffer.Length), 64);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static MemoryPlan ReadPlan(Utf8 path, ModelOptions options)
        {
            byte[] error = NativeError.NewImage();
            using (waste_open_options native = ModelOptions.ToNative(options))
            using (var plan = new waste_memory_plan())
            {
                NativeError.Check(
                    WasteNative.waste_plan(path.Bytes, path.Count, native, plan, error), error);
                return new MemoryPlan(plan);
            }
        }

        private static WasteJob StartOpen(string path, ModelOptions options)
        {
            NativeLoader.EnsureLoaded();
            return StartOpen(Utf8.Required(path, nameof(path)), options);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static WasteJob StartOpen(Utf8 path, ModelOptions options)
        {
            byte[] error = NativeError.NewImage();
            using (waste_open_options native = ModelOptions.ToNative(options))
            {
                NativeError.Check(
                    WasteNative.waste_open_job(path.Bytes, path.Count, native, out IntPtr job,
                                               error), error);
                return new WasteJob(job);
            }
        }

        private static WasteModel Take(WasteJob job)
        {
            byte[] error = NativeError.NewImage();
            NativeError.Check(
                WasteNative.waste_job_model(job.Handle, out IntPtr model, error), error);
            return new WasteModel(model);
        }

        private IntPtr CreateHandle(SessionOptions options)
        {
            byte[] error = NativeError.NewImage();
            using (gate.Enter())
            using (waste_session_options native = SessionOptions.ToNative(options))
            {
                NativeError.Check(
                    WasteNative.waste_session_create(handle, native, out IntPtr session, error),
                    error);
                return session;
            }
        }

        private ModelInfo ReadInfo()
        {
            byte[] error = NativeError.NewImage();
            string name = Utf8.Read(
                buffer => NativeError.Check(
                    WasteNative.waste_model_name(handle, buffer, buffer.Length, error), error),
                64);
            using (var native = new waste_info())
            {
                NativeError.Check(WasteNative.waste_model_info(handle, native, error), error);
                return new ModelInfo(name, native);
            }
        }

        private async Task CloseAsync()
        {
            if (!gate.Close())
                return;
            Stopwatch since = Stopwatch.StartNew();
            List<Session> open = CancelSessions();
            foreach (Session session in open)
                await session.CloseAsync(since).ConfigureAwait(false);
            await gate.WaitUntilIdleAsync(since).ConfigureAwait(false);
            handle.Dispose();
        }

        private List<Session> CancelSessions()
        {
            var open = new List<Session>();
            lock (sessions)
                foreach (WeakReference<Session> known in sessions)
                    if (known.TryGetTarget(out Session session))
                        open.Add(session);
            foreach (Session session in open)
                session.CancelWork();
            return open;
        }
    }
}
