// SPDX-License-Identifier: Apache-2.0
//
// What stops a thread inside waste_next or waste_eval. Such a thread cannot notice its own
// interrupt, so one daemon thread looks at all those that are inside, 50 times a second. It only
// looks (the flag stays set for the reader) and ends when nobody has been inside for some seconds.
// The alternative, a helper thread for each answer, costs two thread switches a token.
//
// The library forgets a cancel that comes before an eval has begun in it. So whoever was told to
// stop, or has a handle that was closed, is told again each time until it has left.

package ai.waste;

import java.util.HashMap;
import java.util.Map;

final class Interrupts {
  private static final long POLL_MILLIS = 20;
  private static final int IDLE_POLLS = 250;
  private static final Map<Handle, Inside> INSIDE = new HashMap<>();
  private static boolean running;

  private Interrupts() {}

  private static final class Inside {
    private final Thread thread = Thread.currentThread();
    private boolean told;
  }

  /** Until end, an interrupt of this thread cancels {@code handle}. One thread a handle. */
  static void begin(Handle handle) {
    if (Thread.currentThread().isInterrupted()) handle.cancel();
    synchronized (INSIDE) {
      INSIDE.put(handle, new Inside());
      if (running) return;
      running = true;
    }
    Daemon.start("waste-interrupts", Interrupts::run);
  }

  /** Cancels {@code handle} until its thread is out; nothing if none is inside. */
  static void cancel(Handle handle) {
    synchronized (INSIDE) {
      final Inside inside = INSIDE.get(handle);
      if (inside == null) return;
      inside.told = true;
      handle.cancel();
    }
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
            (handle, inside) -> {
              if (inside.told || inside.thread.isInterrupted() || handle.isClosed())
                handle.cancel();
            });
      }
    }
  }
}
