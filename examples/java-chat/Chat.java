// SPDX-License-Identifier: Apache-2.0
//
// A chat in the terminal. Answers stream; Ctrl-C stops the answer, and quits when there is none or
// on the second press; the end of the input quits too.
//
// Java has no public API for signals: a shutdown hook only runs once the VM is ending and cannot
// stop that. sun.misc.Signal is what the JDK has (module jdk.unsupported, there since the first
// versions and kept); it is used by reflection, so that this compiles without warnings and still
// runs, with Ctrl-C just quitting, on a VM that lacks it.

import ai.waste.ChatSession;
import ai.waste.ContextFullException;
import ai.waste.GenerationCancelledException;
import ai.waste.GenerationOptions;
import ai.waste.ModelOptions;
import ai.waste.Piece;
import ai.waste.SessionOptions;
import ai.waste.TokenStream;
import ai.waste.WasteException;
import ai.waste.WasteModel;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;

public final class Chat {
  private static final int INTERRUPTED = 130;

  private final PrintStream out =
      new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
  private final AtomicReference<TokenStream> answering = new AtomicReference<>();

  private Chat() {}

  public static void main(String[] arguments) throws IOException {
    if (arguments.length < 1 || arguments.length > 2) {
      System.err.println("Usage: Chat MODEL [SYSTEM-MESSAGE]");
      System.exit(2);
    }
    try {
      new Chat().run(Path.of(arguments[0]), arguments.length == 2 ? arguments[1] : null);
    } catch (WasteException e) {
      System.err.println(e.getMessage());
      System.exit(1);
    }
  }

  private void run(Path path, String system) throws IOException {
    final BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    onInterrupt(this::interrupt);
    try (WasteModel model = WasteModel.open(path, ModelOptions.defaults(), this::show);
        ChatSession chat = model.newChat(SessionOptions.builder().system(system).build())) {
      out.println("\r" + model.info().name() + ", Ctrl-C stops an answer, Ctrl-D quits");
      while (true) {
        out.print("> ");
        final String line = in.readLine();
        if (line == null) break;
        if (!line.isBlank()) answer(chat, line);
      }
      out.println();
    }
  }

  private void show(ai.waste.Progress progress) {
    if (!progress.finished()) out.printf("\rloading %3.0f %%", 100 * progress.fraction());
  }

  private void answer(ChatSession chat, String prompt) {
    final GenerationOptions options =
        GenerationOptions.builder().temperature(0.7).topP(0.9).build();
    try (TokenStream stream = chat.stream(prompt, options)) {
      answering.set(stream);
      for (Piece piece : stream) out.print(piece.text());
      out.printf("%n[%.0f tokens/s]%n", stream.completion().timings().tokensPerSecond());
    } catch (GenerationCancelledException e) {
      out.println(" [stopped]"); // the conversation goes on with what was said
    } catch (ContextFullException e) {
      out.println(e.getMessage() + "\n[starting over]");
      chat.reset();
    } finally {
      answering.set(null);
    }
  }

  /** On a thread of the VM. The first press stops the answer; without one there is the exit. */
  private void interrupt() {
    final TokenStream stream = answering.getAndSet(null);
    if (stream == null) System.exit(INTERRUPTED);
    stream.cancel();
  }

  private static void onInterrupt(Runnable action) {
    try {
      final Class<?> signal = Class.forName("sun.misc.Signal");
      final Class<?> handler = Class.forName("sun.misc.SignalHandler");
      final Object proxy =
          Proxy.newProxyInstance(
              handler.getClassLoader(),
              new Class<?>[] {handler},
              (self, method, arguments) -> {
                if (method.getName().equals("handle")) action.run();
                return null;
              });
      final Object sigint = signal.getConstructor(String.class).newInstance("INT");
      signal.getMethod("handle", signal, handler).invoke(null, sigint, proxy);
    } catch (ReflectiveOperationException e) {
      return; // Ctrl-C quits, as in any program
    }
  }
}
