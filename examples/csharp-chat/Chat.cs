// SPDX-License-Identifier: Apache-2.0
//
// A chat in the terminal: text comes as it is made, Ctrl-C cancels the answer, Ctrl-C at the prompt
// or the end of input quits. One file, C# 7.2.
using System;
using System.Text;
using System.Threading;
using Waste;

internal static class Chat
{
    private static CancellationTokenSource running;

    private static int Main(string[] arguments)
    {
        if (arguments.Length == 0 || arguments.Length > 2)
        {
            Console.Error.WriteLine("usage: chat MODEL [SYSTEM-MESSAGE]");
            return 2;
        }
        // A model's text is Unicode, also where the terminal's locale does not say so.
        Console.OutputEncoding = new UTF8Encoding(false);
        Console.CancelKeyPress += CancelAnswer;
        try
        {
            using (WasteModel model = Open(arguments[0]))
            using (ChatSession chat = model.CreateChat(new SessionOptions
            {
                System = arguments.Length > 1 ? arguments[1] : null,
            }))
                Talk(chat);
            return 0;
        }
        catch (RamBudgetException small)
        {
            Console.Error.WriteLine(small.Message + "\nIt needs " + small.NeededBytes + " bytes.");
        }
        catch (WasteException failed)
        {
            Console.Error.WriteLine(failed.Message);
        }
        return 1;
    }

    private static WasteModel Open(string path)
    {
        MemoryPlan plan = WasteModel.Plan(path);
        WasteModel model = WasteModel.Open(path);
        Console.Error.WriteLine("{0}: {1} layers, {2} experts, {3} MiB of RAM",
                                model.Info.Architecture, model.Info.LayerCount,
                                model.Info.ExpertCount, plan.BudgetBytes >> 20);
        return model;
    }

    private static void Talk(ChatSession chat)
    {
        while (true)
        {
            Console.Write("\n> ");
            string prompt = Console.ReadLine();
            if (prompt == null)
                return;
            if (prompt.Length != 0)
                Answer(chat, prompt);
        }
    }

    private static void Answer(ChatSession chat, string prompt)
    {
        using (var source = new CancellationTokenSource())
        {
            Volatile.Write(ref running, source);
            PieceStream answer = chat.Stream(prompt, null, source.Token);
            try
            {
                foreach (Piece piece in answer)
                    Console.Write(piece.Text);
                Timings timings = answer.Completion.Timings;
                Console.Error.Write("\n[{0} tokens, {1:F1} s]",
                                    answer.Completion.Usage.GeneratedTokens,
                                    (timings.Prefill + timings.Decode).TotalSeconds);
            }
            catch (OperationCanceledException)
            {
                Console.Write(" [cancelled]");
            }
            catch (ContextFullException full)
            {
                Console.Write("[{0}; the conversation starts anew]", full.Message);
                chat.Reset();
            }
            finally
            {
                Volatile.Write(ref running, null);
            }
        }
    }

    private static void CancelAnswer(object sender, ConsoleCancelEventArgs pressed)
    {
        CancellationTokenSource source = Volatile.Read(ref running);
        if (source == null || source.IsCancellationRequested)
            return; // At the prompt, or pressed again: the program ends.
        pressed.Cancel = true;
        try
        {
            source.Cancel();
        }
        catch (ObjectDisposedException)
        {
            // The answer ended in the meantime.
        }
    }
}
