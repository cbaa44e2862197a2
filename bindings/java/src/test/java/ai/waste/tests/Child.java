// SPDX-License-Identifier: Apache-2.0
//
// What the tests run in another process: one command, its result on standard output.

package ai.waste.tests;

import ai.waste.ChatSession;
import ai.waste.TokenStream;
import ai.waste.WasteException;
import ai.waste.WasteModel;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;

final class Child {
  static final int EXIT_CODE = 7;

  private Child() {}

  public static void main(String[] arguments) throws Exception {
    switch (arguments[0]) {
      case "version":
        version();
        break;
      case "continue":
        goOn(Path.of(arguments[1]));
        break;
      case "exit":
        exitDuring(Path.of(arguments[1]), Boolean.parseBoolean(arguments[2]));
        break;
      default:
        throw new IllegalArgumentException(arguments[0]);
    }
  }

  /** The version, or the error's type and message. */
  private static void version() {
    try {
      System.out.println("version " + WasteModel.libraryVersion());
    } catch (WasteException e) {
      System.out.println(e.getClass().getSimpleName() + ": " + e.getMessage());
    }
  }

  private static void goOn(Path saved) {
    try (WasteModel model = Rig.mini();
        ChatSession chat = model.newChat()) {
      chat.load(saved);
      System.out.println(Arrays.toString(chat.ask("What is the capital of Japan?").tokens()));
    }
  }

  /** Ends the process while another thread is inside waste_next; main is `exit` or just returns. */
  private static void exitDuring(Path path, boolean exit) throws Exception {
    final boolean isTest = path.toString().startsWith("test:");
    final WasteModel model = isTest ? WasteModel.open(path, Rig.LONG) : WasteModel.open(path);
    final ChatSession chat = model.newChat();
    final CountDownLatch reading = new CountDownLatch(1);
    final Thread reader =
        new Thread(
            () -> {
              try (TokenStream stream = chat.stream("x")) {
                stream.forEach(piece -> reading.countDown());
              }
            });
    reader.setDaemon(true);
    reader.start();
    reading.await();
    System.out.println("reading");
    if (exit) System.exit(EXIT_CODE);
  }
}
