// SPDX-License-Identifier: Apache-2.0
//
// A session whose prompts are messages of a conversation.
using Waste.Native;

namespace Waste
{
    /// <summary>
    /// A chat with a model: prompts go through the model's chat format as a user's message, and
    /// the conversation stays in the session. Threads and closing are as for
    /// <see cref="Session"/>.
    /// </summary>
    public sealed class ChatSession : Session
    {
        internal ChatSession(WasteModel model, System.IntPtr address) : base(model, address) { }

        internal override bool IsRaw
        {
            get { return false; }
        }

        /// <summary>Adds a whole message to the conversation. It costs nothing until an answer is
        /// wanted: ask with a null prompt, or go on adding.</summary>
        /// <exception cref="ContextFullException">It does not fit.</exception>
        /// <exception cref="SessionBusyException">An answer lives.</exception>
        /// <exception cref="WasteException">The model has no chat format (Unsupported), or the text
        /// is half of a surrogate pair (Argument).</exception>
        public void AddMessage(Role role, string text)
        {
            Utf8 bytes = Utf8.Required(text, nameof(text));
            byte[] error = NativeError.NewImage();
            using (Enter())
                NativeError.Check(
                    WasteNative.waste_session_add_message(Handle, (int)role, bytes.Bytes,
                                                          bytes.Count, error), error);
        }

        /// <summary>A second chat that holds the same.</summary>
        /// <exception cref="RamBudgetException">No memory is left for another session.</exception>
        public new ChatSession Fork()
        {
            return new ChatSession(Model, ForkHandle());
        }

        internal void Begin(string system)
        {
            try
            {
                AddMessage(Role.System, system);
            }
            catch
            {
                Dispose();
                throw;
            }
        }
    }
}
