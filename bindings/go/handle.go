// SPDX-License-Identifier: Apache-2.0
//
// Who owns native objects, and how they are closed while others are inside of them.

package waste

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// How long Close waits for calls that are inside the library.
const closeWait = time.Second

// How often a cancel is repeated that is lost if it comes too early.
const cancelAgain = 2 * time.Millisecond

// A handle owns one native object, so that none is used after it was freed: it counts the calls
// that are inside, lets none in once it is closed, and the last one out frees. Cancelling holds the
// lock under which the pointer is given up, so it cannot meet a freed object. A handle knows those
// that were made from it, and closing it closes them first. Nothing here points back to the
// objects that users see; those carry finalizers.
type handle struct {
	mu     sync.Mutex
	native uintptr // 0 once it is being freed
	calls  int
	closed error // why no call is let in any more
	parent *handle
	kids   map[*handle]struct{}

	closing chan struct{} // closed when no call is let in any more
	freed   chan struct{} // closed when the object is gone
}

// newHandle takes over native, and frees it if the parent was closed meanwhile.
func newHandle(native uintptr, parent *handle) (*handle, error) {
	h := &handle{native: native, parent: parent, closing: make(chan struct{}),
		freed: make(chan struct{})}
	if parent == nil {
		return h, nil
	}
	parent.mu.Lock()
	closed := parent.closed
	if closed == nil {
		if parent.kids == nil {
			parent.kids = make(map[*handle]struct{})
		}
		parent.kids[h] = struct{}{}
	}
	parent.mu.Unlock()
	if closed != nil {
		nativeFree(native)
		return nil, closed
	}
	return h, nil
}

// failedHandle is one that never had an object: every call gets err.
func failedHandle(err error) *handle {
	h := &handle{closed: err, freed: make(chan struct{})}
	close(h.freed)
	return h
}

// call runs f inside the object, and keeps owner from being collected meanwhile.
func (h *handle) call(owner any, f func(native uintptr) error) error {
	defer runtime.KeepAlive(owner)
	if h == nil {
		return ErrClosed
	}
	h.mu.Lock()
	if h.closed != nil {
		h.mu.Unlock()
		return h.closed
	}
	h.calls++
	h.mu.Unlock()
	defer h.leave()
	return because(f(h.native), h.reason())
}

func (h *handle) leave() {
	h.mu.Lock()
	h.calls--
	native := h.giveUp()
	h.mu.Unlock()
	h.release(native)
}

// reason is why the handle was closed, or nil.
func (h *handle) reason() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

// giveUp returns the object if it is to be freed now. The lock is held.
func (h *handle) giveUp() uintptr {
	if h.closed == nil || h.calls > 0 {
		return 0
	}
	native := h.native
	h.native = 0
	return native
}

func (h *handle) release(native uintptr) {
	if native == 0 {
		return
	}
	if h.parent != nil {
		h.parent.mu.Lock()
		delete(h.parent.kids, h)
		h.parent.mu.Unlock()
	}
	nativeFree(native)
	close(h.freed)
}

// cancel tells the object to stop what it does; nothing happens if there is no object any more.
func (h *handle) cancel() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.native != 0 {
		nativeCancel(h.native)
	}
}

// cancelWith cancels a generation or a job when ctx is done, until the returned function is called.
// Those stay cancelled, so once is enough, and a cancel that comes late harms nobody.
func (h *handle) cancelWith(ctx context.Context) (stop func()) {
	if ctx.Done() == nil {
		return func() {}
	}
	if ctx.Err() != nil {
		h.cancel()
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			h.cancel()
		case <-done:
		}
	}()
	return func() { close(done) }
}

// cancelCall cancels the call that its caller makes in a session, when ctx is done or the session
// is closed, until the returned function is called. A session does not stay cancelled: the cancel
// is lost if the call has not begun yet, and would hit the next call if it came too late. So it is
// repeated while this one is inside, and none comes after stop has returned.
func (h *handle) cancelCall(ctx context.Context) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-ctx.Done():
		case <-h.closing:
		case <-done:
			return
		}
		ticker := time.NewTicker(cancelAgain)
		defer ticker.Stop()
		for {
			h.cancel()
			select {
			case <-ticker.C:
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// shut lets no call in any more, cancels what runs, and frees what nobody is inside of. It waits
// for nothing, and returns what close waits for.
func (h *handle) shut(pending []<-chan struct{}) []<-chan struct{} {
	if h == nil {
		return pending
	}
	h.mu.Lock()
	kids := h.kids
	h.kids = nil
	if h.closed == nil {
		h.closed = ErrClosed
		close(h.closing)
	}
	if h.calls > 0 && h.native != 0 {
		nativeCancel(h.native)
	}
	native := h.giveUp()
	h.mu.Unlock()
	for kid := range kids {
		pending = kid.shut(pending)
	}
	h.release(native)
	return append(pending, h.freed)
}

// close shuts, and waits a bounded time until everything is freed.
func (h *handle) close() {
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	for _, freed := range h.shut(nil) {
		select {
		case <-freed:
		case <-timer.C:
			return
		}
	}
}
