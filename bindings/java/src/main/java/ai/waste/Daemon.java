// SPDX-License-Identifier: Apache-2.0
//
// Threads of this library: they never keep a process alive, and hold no application's class loader.

package ai.waste;

final class Daemon {
  private Daemon() {}

  static void start(String name, Runnable work) {
    final Thread thread = new Thread(null, work, name);
    thread.setDaemon(true);
    thread.setContextClassLoader(null);
    thread.start();
  }
}
