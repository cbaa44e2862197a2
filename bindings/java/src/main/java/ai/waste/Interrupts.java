// SPDX-License-Identifier: Apache-2.0
//
// Turns Thread.interrupt() into waste_cancel. A thread inside waste_next cannot notice its own
// interrupt, so one daemon thread looks at all those that are inside, 50 times a second. It only
// looks (the flag stays set for the reader) and ends when nobody has read for some seconds. The
// alternative, a helper thread for each answer, costs two thread switches a token.

package ai.waste;

import java.util.HashMap;
import java.util.Map;

final class Interrupts {
  private static final long POLL_MILLIS = 20;
  private static final int IDLE_POLLS = 250;
  private static final Map<Handle, Thread> INSIDE = new HashMap<>();
  private static boolean running;

  private Interrupts() {}

  /** Until end, an interrupt of this thread cancels {@code handle}. */
  static void begin(Handle handle) {
    final Thread current = Thread.currentThread();
    if (current.isInterrupted()) handle.cancel();
    synchronized (INSIDE) {
      INSIDE.put(handle, current);
      if (running) return;
      running = true;
    }
    Daemon.start("waste-interrupts", Interrupts::run);
  }

  static void end(Handle handle) {
    synchronized (INSIDE) {
      INSIDE.remove(handle);
    }
  }

  private static void run() {
    for (int idle = 0; idle < IDLE_POLLS; ) {
      try {
        Thread.sleep(POLL_MILLIS);
      } catch (InterruptedException e) {
        continue; // nobody has a reason to, and the next round goes on
      }
      synchronized (INSIDE) {
        idle = INSIDE.isEmpty() ? idle + 1 : 0;
        if (idle == IDLE_POLLS) running = false;
        // Under the lock: a thread that has left is no longer here, and its interrupt is its own.
        INSIDE.forEach(
            (handle, thread) -> {
              if (thread.isInterrupted()) handle.cancel();
            });
      }
    }
  }
}
