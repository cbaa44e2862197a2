// SPDX-License-Identifier: Apache-2.0
//
// Evaluations that do not end: cancelled by their context, and closed meanwhile.

package waste_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"sync"
	"testing"
	"time"

	waste "github.com/libwaste/waste/bindings/go"
)

// A model that thinks about each step of a prompt for longer than any test waits.
const stalledModel = `{"context": 1000000, "prefill_stall_ms": 20000, "answers": [["x"]]}`

// manyTokens take the library a moment to check, before the evaluation begins: a cancel that comes
// meanwhile is lost.
var manyTokens = make([]int32, 900000)

func openStalled(t *testing.T) *waste.Model {
	t.Helper()
	return open(t, script(t, stalledModel), waste.WithContext(1000000))
}

// wantHeld compares the tokens that a session holds.
func wantHeld(t *testing.T, session *waste.Session, want []int32) {
	t.Helper()
	held, err := session.Tokens()
	check(t, err)
	if len(held) != len(want) || len(want) > 0 && !reflect.DeepEqual(held, want) {
		t.Fatalf("%v are held, not %v", held, want)
	}
}

func TestEvalCancelled(t *testing.T) {
	session := newSession(t, openStalled(t))
	for _, delay := range []time.Duration{0, 50 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(background, delay)
		within(t, delay+cancelBound, "a cancelled evaluation", func() {
			wantError(t, session.Eval(ctx, make([]int32, 1000)), waste.ErrCancelled,
				context.DeadlineExceeded)
		})
		cancel()
		wantHeld(t, session, nil)
	}
	check(t, session.Reset())
}

// The session goes on after a cancel, and holds what it held before.
func TestEvalCancelledAndAgain(t *testing.T) {
	session := newSession(t, open(t, script(t, `{"prefill_stall_ms": 300, "answers": [["x"]]}`)))
	check(t, session.Eval(background, []int32{65, 66}))
	ctx, cancel := context.WithCancel(background)
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
	wantError(t, session.Eval(ctx, []int32{67}), waste.ErrCancelled, context.Canceled)
	wantHeld(t, session, []int32{65, 66})
	check(t, session.Eval(background, []int32{68}))
	wantHeld(t, session, []int32{65, 66, 68})
}

// A cancel that comes just when the evaluation begins is not lost, and one that comes just when it
// has ended does not reach the next one.
func TestEvalCancelledAtEveryMoment(t *testing.T) {
	stalled := newSession(t, openStalled(t))
	quick := newSession(t, open(t, script(t, `{"answers": [["x"]]}`)))
	for i := 0; i < 200; i++ {
		ctx, cancel := context.WithCancel(background)
		timer := time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
		tokens := manyTokens
		if i%10 > 0 {
			tokens = tokens[:1]
		}
		within(t, cancelBound, "a cancelled evaluation", func() {
			wantError(t, stalled.Eval(ctx, tokens), waste.ErrCancelled, context.Canceled)
		})
		timer.Stop()

		ctx, cancel = context.WithCancel(background)
		timer = time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
		if err := quick.Eval(ctx, []int32{65}); err != nil {
			wantError(t, err, waste.ErrCancelled, context.Canceled)
		}
		check(t, quick.Eval(background, []int32{66}))
		timer.Stop()
		cancel()
	}
}

func TestEvalIsBusyForOthers(t *testing.T) {
	session := newSession(t, openStalled(t))
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- session.Eval(ctx, []int32{65}) }()
	eventually(t, "the evaluation has begun", func() bool {
		stats, err := session.Stats() // which, unlike others, does not claim the session
		check(t, err)
		return stats.Position == 1
	})
	done, cancelOther := context.WithCancel(background)
	cancelOther()
	wantError(t, session.Eval(background, []int32{66}), waste.ErrBusy)
	wantError(t, session.Eval(done, []int32{66}), waste.ErrBusy)
	wantError(t, session.Reset(), waste.ErrBusy)
	_, err := session.Ask(background, "x")
	wantError(t, err, waste.ErrBusy)
	if session.Logits(nil) != 0 {
		t.Fatal("logits of nothing")
	}
	select {
	case err := <-ended:
		t.Fatalf("the evaluation ended: %v", err)
	default:
	}
	cancel()
	wantError(t, <-ended, waste.ErrCancelled, context.Canceled)
}

// closeDuringEval closes something while an evaluation is about to begin, or runs.
func closeDuringEval(t *testing.T, what func(*waste.Model, *waste.Session) io.Closer) {
	t.Helper()
	for i := 0; i < 20; i++ {
		model := openStalled(t)
		session := newSession(t, model)
		var group sync.WaitGroup
		group.Add(1)
		go func() {
			defer group.Done()
			if err := session.Eval(background, manyTokens); !errors.Is(err, waste.ErrClosed) {
				t.Errorf("the error is %v", err)
			}
		}()
		time.Sleep(time.Duration(i) * 200 * time.Microsecond)
		within(t, cancelBound/2, "closing", func() {
			check(t, what(model, session).Close())
			group.Wait()
		})
		wantError(t, session.Reset(), waste.ErrClosed)
	}
}

func TestRow10CloseDuringEval(t *testing.T) {
	t.Run("session", func(t *testing.T) {
		closeDuringEval(t, func(_ *waste.Model, s *waste.Session) io.Closer { return s })
	})
	t.Run("model", func(t *testing.T) {
		closeDuringEval(t, func(m *waste.Model, _ *waste.Session) io.Closer { return m })
	})
}
