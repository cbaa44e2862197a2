// SPDX-License-Identifier: Apache-2.0
//
// Closes the handles of public objects that nobody closed, once the collector has found them: a
// phantom reference for each, and one daemon thread. java.lang.ref.Cleaner would do the same, but
// Android has it from API 33 on only. The thread ends when nothing has been left to watch for some
// seconds, so that a class loader that is thrown away can go.

package ai.waste;

import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.util.HashSet;
import java.util.Set;

final class Reaper {
  private static final long IDLE_MILLIS = 5000;
  private static final ReferenceQueue<Object> QUEUE = new ReferenceQueue<>();
  private static final Set<Watched> WATCHED = new HashSet<>();
  private static boolean running;

  private Reaper() {}

  static final class Watched extends PhantomReference<Object> {
    private final Handle handle;

    private Watched(Object owner, Handle handle) {
      super(owner, QUEUE);
      this.handle = handle;
    }
  }

  static Watched watch(Object owner, Handle handle) {
    final Watched watched = new Watched(owner, handle);
    synchronized (WATCHED) {
      WATCHED.add(watched);
      if (!running) {
        running = true;
        Daemon.start("waste-reaper", Reaper::run);
      }
    }
    return watched;
  }

  /** Null is ignored. */
  static void forget(Watched watched) {
    synchronized (WATCHED) {
      WATCHED.remove(watched);
    }
  }

  private static void run() {
    while (true) {
      final Reference<?> found = removeNext();
      if (found != null) {
        ((Watched) found).handle.close();
      } else {
        synchronized (WATCHED) {
          if (WATCHED.isEmpty()) {
            running = false;
            return;
          }
        }
      }
    }
  }

  private static Reference<?> removeNext() {
    try {
      return QUEUE.remove(IDLE_MILLIS);
    } catch (InterruptedException e) {
      return null; // nobody has a reason to, and the next round goes on
    }
  }
}
