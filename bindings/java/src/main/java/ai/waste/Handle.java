// SPDX-License-Identifier: Apache-2.0
//
// The owner of one native object: what makes use after free impossible. Calls enter and leave; once
// closed nobody enters, and whoever leaves last frees. Closing cancels what runs in this object and
// its children (a model's sessions, a session's answer), waits a bounded time for the calls in
// flight, and may be done by any thread, any number of times, in any order.
//
// While a call is inside, the handle refers to its public object, so that the collector cannot take
// that object (and close the handle) during a call that no longer mentions it.

package ai.waste;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

class Handle {
  /** How long close waits for calls in flight, all children together. */
  static final long CLOSE_WAIT_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final String name;
  private final Handle parent;
  private final long address;
  private final Set<Handle> children = new HashSet<>();
  private Reaper.Watched watched;
  private Object owner;
  private int inside;
  private boolean closed;
  private boolean freed;

  /** Takes over {@code address}. The parent may be null. */
  Handle(String name, Handle parent, long address) {
    this.name = name;
    this.parent = parent;
    this.address = address;
  }

  /**
   * From here on the handle closes with its parent, and when {@code object} is no longer reachable.
   * If the parent was closed meanwhile, this frees and throws.
   */
  final void ownedBy(Object object) {
    if (parent != null && !parent.adopt(this)) {
      close();
      throw parent.closedError();
    }
    final Reaper.Watched made = Reaper.watch(object, this);
    synchronized (this) {
      if (!freed) {
        watched = made;
        return;
      }
    }
    Reaper.forget(made);
  }

  /** The native object, for one call on behalf of {@code caller}; leave must follow. */
  final long enter(Object caller) {
    final long entered = tryEnter(caller);
    if (entered == 0) throw closedError();
    return entered;
  }

  /** The same, with 0 for a handle that is closed. */
  final synchronized long tryEnter(Object caller) {
    if (closed) return 0;
    inside++;
    owner = caller;
    return address;
  }

  final void leave() {
    final boolean last;
    synchronized (this) {
      inside--;
      if (inside == 0) owner = null;
      last = inside == 0 && closed && !freed;
      if (last) freed = true;
      notifyAll();
    }
    if (last) free();
  }

  /** One native call on behalf of {@code caller}; what it returns, unless that is an error. */
  final long call(Object caller, NativeCall call) {
    final NativeError error = new NativeError();
    final long entered = enter(caller);
    try {
      return error.check(call.on(entered, error.image));
    } finally {
      leave();
    }
  }

  /** Cancels what runs in this object. Returns at once; nothing once it is freed. */
  final void cancel() {
    synchronized (this) {
      if (freed) return;
      inside++;
    }
    WasteNative.waste_cancel(address);
    leave();
  }

  /** Cancels the answer that runs, of a session; all of them, of a model. */
  final void cancelChildren() {
    for (Handle child : copyOfChildren()) {
      child.cancel();
      child.cancelChildren();
    }
  }

  final void close() {
    close(System.nanoTime() + CLOSE_WAIT_NANOS);
  }

  final synchronized boolean isClosed() {
    return closed;
  }

  /** What a call on a closed object throws. */
  final IllegalStateException closedError() {
    return new IllegalStateException("this " + name + " is closed");
  }

  /** Gives the native object back; the last call has left. Overridden to read results first. */
  void release(long released) {
    WasteNative.waste_free(released);
  }

  private void close(long deadline) {
    synchronized (this) {
      if (closed) return;
      closed = true;
      inside++;
    }
    cancel();
    cancelChildren();
    for (Handle child : copyOfChildren()) child.close(deadline);
    awaitOthers(deadline);
    leave();
  }

  private synchronized void awaitOthers(long deadline) {
    boolean interrupted = false;
    while (inside > 1) {
      final long left = deadline - System.nanoTime();
      if (left <= 0) break;
      try {
        TimeUnit.NANOSECONDS.timedWait(this, left);
      } catch (InterruptedException e) {
        interrupted = true; // the wait is short, and what comes after it must happen
      }
    }
    if (interrupted) Thread.currentThread().interrupt();
  }

  private void free() {
    if (parent != null) parent.disown(this);
    synchronized (this) {
      Reaper.forget(watched);
      watched = null;
    }
    release(address);
  }

  private synchronized boolean adopt(Handle child) {
    return !closed && children.add(child);
  }

  private synchronized void disown(Handle child) {
    children.remove(child);
  }

  private synchronized List<Handle> copyOfChildren() {
    return new ArrayList<>(children);
  }
}
