// SPDX-License-Identifier: Apache-2.0
//
// Long work on a thread of the library's own: verify, convert and synthesize for everyone, open for
// WasteModel.
// Waiting polls, so that progress and cancel need no callback from native code, and the async form
// holds no thread at all.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;
using Waste.Native;

namespace Waste
{
    /// <summary>
    /// Long work in progress. Members may be called from any thread. Disposing cancels the work.
    /// </summary>
    public sealed class WasteJob : IDisposable
    {
        private const int PollMilliseconds = 20;

        private readonly NativeHandle handle;
        private volatile bool disposed;

        internal WasteJob(IntPtr address)
        {
            handle = new NativeHandle(address);
        }

        /// <summary>Reads every byte of a container and checks all that can be checked.</summary>
        /// <exception cref="WasteException">The job could not start.</exception>
        public static WasteJob Verify(string path)
        {
            NativeLoader.EnsureLoaded();
            return StartVerify(Utf8.Required(path, nameof(path)));
        }

        /// <summary>Converts a Hugging Face folder to a container. The target must not exist, and
        /// appears only when it is complete.</summary>
        /// <exception cref="WasteException">The job could not start.</exception>
        public static WasteJob Convert(string source, string target, ConvertOptions options = null)
        {
            NativeLoader.EnsureLoaded();
            return StartConvert(Utf8.Required(source, nameof(source)),
                                Utf8.Required(target, nameof(target)), options);
        }

        /// <summary>Writes a container of random weights in the true shape of a model, for
        /// measuring. The target must not exist, and appears only when it is complete.</summary>
        /// <param name="shape">"mini", "kimi-linear-48b" or "k3".</param>
        /// <param name="target">The container's folder.</param>
        /// <param name="options">Null for the whole model and seed 0.</param>
        /// <exception cref="WasteException">The job could not start: Argument, if the shape is
        /// unknown or an option cannot be.</exception>
        public static WasteJob Synthesize(string shape, string target,
                                          SynthesisOptions options = null)
        {
            NativeLoader.EnsureLoaded();
            return StartSynthesize(Utf8.Required(shape, nameof(shape)),
                                   Utf8.Required(target, nameof(target)), options);
        }

        internal NativeHandle Handle
        {
            get { return handle; }
        }

        /// <summary>How far it is.</summary>
        public LoadProgress Progress
        {
            get
            {
                byte[] error = NativeError.NewImage();
                using (var native = new waste_progress())
                {
                    NativeError.Check(WasteNative.waste_job_progress(handle, native, error), error);
                    return new LoadProgress(native);
                }
            }
        }

        /// <summary>Waits until the work has ended and throws why it failed.</summary>
        /// <param name="progress">Told how far it is, on this thread.</param>
        /// <param name="cancellationToken">Cancels the work.</param>
        /// <exception cref="WasteException">The work failed.</exception>
        /// <exception cref="OperationCanceledException">It was cancelled.</exception>
        public void Wait(IProgress<LoadProgress> progress = null,
                         CancellationToken cancellationToken = default(CancellationToken))
        {
            using (cancellationToken.Register(CancelHandle, handle))
            {
                while (!Poll(PollMilliseconds, cancellationToken))
                    Report(progress);
            }
            Report(progress);
        }

        /// <summary>The same without a thread that waits: the returned task is completed by a
        /// timer. Progress is reported from a thread of the pool.</summary>
        public async Task WaitAsync(
            IProgress<LoadProgress> progress = null,
            CancellationToken cancellationToken = default(CancellationToken))
        {
            using (cancellationToken.Register(CancelHandle, handle))
            {
                int pause = 1;
                while (!Poll(0, cancellationToken))
                {
                    Report(progress);
                    await Task.Delay(pause).ConfigureAwait(false);
                    pause = Math.Min(2 * pause, PollMilliseconds);
                }
            }
            Report(progress);
        }

        /// <summary>Asks the work to stop; whoever waits gets OperationCanceledException.
        /// </summary>
        public void Cancel()
        {
            handle.Cancel();
        }

        /// <summary>The lines that the job had to say since the last call.</summary>
        public IReadOnlyList<string> ReadLog()
        {
            return Log.Read(handle);
        }

        /// <summary>Cancels the work, waits until its thread has stopped (a second at most), and
        /// frees it.</summary>
        public void Dispose()
        {
            if (disposed)
                return;
            disposed = true;
            try
            {
                WasteNative.waste_cancel(handle);
                WasteNative.waste_job_wait(handle, (long)CallGate.Patience.TotalMilliseconds, null);
            }
            catch (ObjectDisposedException)
            {
                // Another thread disposed it in the meantime.
            }
            handle.Dispose();
        }

        [MethodImpl(MethodImplOptions.NoInlining)] // See NativeLoader.EnsureLoaded.
        private static WasteJob StartVerify(Utf8 path)
        {
            byte[] error = NativeError.NewImage();
            NativeError.Check(
                WasteNative.waste_verify(path.Bytes, path.Count, out IntPtr job, error), error);
            return new WasteJob(job);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static WasteJob StartConvert(Utf8 source, Utf8 target, ConvertOptions options)
        {
            byte[] error = NativeError.NewImage();
            using (waste_convert_options native = ConvertOptions.ToNative(options))
            {
                NativeError.Check(
                    WasteNative.waste_convert(source.Bytes, source.Count, target.Bytes,
                                              target.Count, native, out IntPtr job, error),
                    error);
                return new WasteJob(job);
            }
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static WasteJob StartSynthesize(Utf8 shape, Utf8 target, SynthesisOptions options)
        {
            byte[] error = NativeError.NewImage();
            using (waste_synthesis_options native = SynthesisOptions.ToNative(options))
            {
                NativeError.Check(
                    WasteNative.waste_synthesize(shape.Bytes, shape.Count, target.Bytes,
                                                 target.Count, native, out IntPtr job, error),
                    error);
                return new WasteJob(job);
            }
        }

        private static void CancelHandle(object handle)
        {
            ((NativeHandle)handle).Cancel();
        }

        /// <summary>True once the work has ended well.</summary>
        private bool Poll(long milliseconds, CancellationToken token)
        {
            byte[] error = NativeError.NewImage();
            long status = WasteNative.waste_job_wait(handle, milliseconds, error);
            if (status < 0)
                throw NativeError.From(status, error, token);
            return status != WasteNative.WASTE_RUNNING;
        }

        private void Report(IProgress<LoadProgress> progress)
        {
            if (progress != null)
                progress.Report(Progress);
        }
    }
}
