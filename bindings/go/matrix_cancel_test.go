// SPDX-License-Identifier: Apache-2.0
//
// Rows 7 to 10 of the behaviour matrix: answers that are not read to their end.

package waste_test

import (
	"context"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	waste "github.com/libwaste/waste/bindings/go"
)

// Reads a stream to its end; the text, and how it ended.
func drain(stream *waste.Stream) (string, error) {
	text := ""
	for stream.Next() {
		text += stream.Piece().Text
	}
	return text, stream.Err()
}

func wantCancelled(t *testing.T, stream *waste.Stream, err error) {
	t.Helper()
	wantError(t, err, waste.ErrCancelled, context.Canceled)
	if reason := stream.Result().FinishReason; reason != waste.FinishCancelled {
		t.Fatalf("the reason is %v", reason)
	}
}

func TestRow07CancelBeforeTheFirstPiece(t *testing.T) {
	model := openEndless(t)
	session := newSession(t, model)
	ctx, cancel := context.WithCancel(background)
	stream := session.Stream(ctx, "x")
	cancel()
	text, err := drain(stream)
	wantCancelled(t, stream, err)
	if held := heldText(t, model, session); text != "" || held != "" {
		t.Fatalf("%q was handed out, %q is held", text, held)
	}
	wantText(t, newSession(t, openMini(t)), capital, rome)
}

func TestRow07CancelMidPrefill(t *testing.T) {
	model := open(t, script(t, `{"prefill_stall_ms": 60000, "answers": [["x"]]}`))
	session := newSession(t, model)
	ctx, cancel := context.WithCancel(background)
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
	stream := session.Stream(ctx, "x")
	within(t, cancelBound, "a cancelled prefill", func() {
		text, err := drain(stream)
		wantCancelled(t, stream, err)
		if text != "" {
			t.Fatalf("%q was handed out", text)
		}
	})
}

func TestRow07CancelMidToken(t *testing.T) {
	model := open(t, script(t, `{"answers": [["said", {"stall_ms": 60000}, "never"], ["more"]]}`))
	session := newSession(t, model)
	ctx, cancel := context.WithCancel(background)
	stream := session.Stream(ctx, "x")
	if !stream.Next() || stream.Piece().Text != "said" {
		t.Fatalf("%+v, %v", stream.Piece(), stream.Err())
	}
	defer time.AfterFunc(50*time.Millisecond, cancel).Stop()
	within(t, cancelBound, "a cancelled token", func() {
		text, err := drain(stream)
		wantCancelled(t, stream, err)
		if text != "" || stream.Result().Text != "said" {
			t.Fatalf("%q and %q", text, stream.Result().Text)
		}
	})
	if held := heldText(t, model, session); !strings.HasSuffix(held, "said") {
		t.Fatalf("%q is held", held)
	}
	wantText(t, session, "y", "more")
}

func TestRow07CancelAfterTheEnd(t *testing.T) {
	session := newSession(t, openMini(t))
	ctx, cancel := context.WithCancel(background)
	stream := session.Stream(ctx, capital)
	text, err := drain(stream)
	check(t, err)
	cancel()
	if stream.Next() || stream.Err() != nil || text != rome {
		t.Fatalf("%q, %v", text, stream.Err())
	}
	if reason := stream.Result().FinishReason; reason != waste.FinishStop {
		t.Fatalf("the reason is %v", reason)
	}
	wantText(t, session, capital, rome)
}

func TestRow07CancelTwice(t *testing.T) {
	model := openEndless(t)
	session := newSession(t, model)
	for i := 0; i < 2; i++ {
		ctx, cancel := context.WithCancel(background)
		stream := session.Stream(ctx, "x")
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
		cancel()
		cancel()
		for n := 0; n < 3; n++ {
			text, err := drain(stream)
			wantCancelled(t, stream, err)
			if text != "" {
				t.Fatalf("%q came after the cancel", text)
			}
		}
		check(t, stream.Close())
		check(t, stream.Close())
	}
}

// What the reader saw is what the session holds, wherever the cancel comes.
func TestRow07CancelFromAnotherThread(t *testing.T) {
	model := openEndless(t)
	for i := 0; i < 50; i++ {
		session := newSession(t, model)
		ctx, cancel := context.WithCancel(background)
		timer := time.AfterFunc(time.Duration(i)*100*time.Microsecond, cancel)
		stream := session.Stream(ctx, "x")
		var text string
		within(t, cancelBound, "a cancel", func() {
			var err error
			text, err = drain(stream)
			wantCancelled(t, stream, err)
		})
		timer.Stop()
		held := heldText(t, model, session)
		if !strings.HasSuffix(held, text) || strings.Count(held, "ha") != strings.Count(text, "ha") {
			t.Fatalf("%q was handed out, %q is held", text, held)
		}
		check(t, session.Close())
	}
}

func TestRow07Deadline(t *testing.T) {
	session := newSession(t, openEndless(t))
	ctx, cancel := context.WithTimeout(background, 20*time.Millisecond)
	defer cancel()
	_, err := session.Ask(ctx, "x")
	wantError(t, err, waste.ErrCancelled, context.DeadlineExceeded)
}

func TestRow08BreakOutOfTheLoop(t *testing.T) {
	model := open(t, script(t, `{"answers": [["a", "b", {"repeat": "c"}], ["second"]]}`))
	session := newSession(t, model)
	stream := session.Stream(background, "x")
	for stream.Next() {
		if stream.Piece().Text == "b" {
			break
		}
	}
	check(t, stream.Close())
	check(t, stream.Err())
	result := stream.Result()
	if result.Text != "ab" || result.FinishReason != waste.FinishCancelled {
		t.Fatalf("%+v", result)
	}
	if held := heldText(t, model, session); !strings.HasSuffix(held, "ab") {
		t.Fatalf("%q is held", held)
	}
	if stream.Next() {
		t.Fatal("a closed stream goes on")
	}
	wantError(t, stream.Err(), waste.ErrCancelled, waste.ErrClosed)
	wantText(t, session, "y", "second")
}

func TestRow08DropTheStream(t *testing.T) {
	session := newSession(t, openEndless(t))
	func() {
		if stream := session.Stream(background, "x"); !stream.Next() {
			t.Fatal(stream.Err())
		}
	}()
	eventually(t, "the collector frees a stream that was dropped", func() bool {
		runtime.GC()
		return session.Reset() == nil
	})
}

func TestRow08CloseTheReader(t *testing.T) {
	session := newSession(t, openEndless(t))
	reader := session.Reader(background, "x")
	if text, err := io.ReadAll(io.LimitReader(reader, 8)); err != nil || string(text) != "hahahaha" {
		t.Fatalf("%q, %v", text, err)
	}
	check(t, reader.Close())
	_, err := reader.Read(make([]byte, 10))
	wantError(t, err, waste.ErrClosed)
	check(t, session.Reset())
}

func TestRow09SecondGenerate(t *testing.T) {
	session := newSession(t, openMini(t))
	first := session.Stream(background, capital)
	if !first.Next() {
		t.Fatal(first.Err())
	}
	text := first.Piece().Text
	_, err := session.Ask(background, capital)
	wantError(t, err, waste.ErrBusy)
	wantError(t, session.Reset(), waste.ErrBusy)
	wantError(t, session.Eval(background, []int32{1}), waste.ErrBusy)
	_, err = session.Fork()
	wantError(t, err, waste.ErrBusy)
	rest, err := drain(first)
	check(t, err)
	if text+rest != rome {
		t.Fatalf("the first answer is %q", text+rest)
	}
	wantText(t, session, capital, rome)
}

// closeDuringGenerate closes something while another goroutine is inside Next.
func closeDuringGenerate(t *testing.T,
	what func(*waste.Model, *waste.Session, *waste.Stream) io.Closer) {
	t.Helper()
	model := open(t, script(t, `{"answers": [["said", {"stall_ms": 60000}, "never"]]}`))
	session := newSession(t, model)
	stream := session.Stream(background, "x")
	if !stream.Next() {
		t.Fatal(stream.Err())
	}
	ended := make(chan error)
	go func() {
		_, err := drain(stream)
		ended <- err
	}()
	time.Sleep(20 * time.Millisecond) // likely inside by now; if not, Next finds it closed
	within(t, cancelBound, "closing", func() {
		check(t, what(model, session, stream).Close())
		wantError(t, <-ended, waste.ErrClosed, waste.ErrCancelled)
	})
}

func TestRow10CloseDuringGenerate(t *testing.T) {
	t.Run("stream", func(t *testing.T) {
		closeDuringGenerate(t, func(_ *waste.Model, _ *waste.Session, s *waste.Stream) io.Closer {
			return s
		})
	})
	t.Run("session", func(t *testing.T) {
		closeDuringGenerate(t, func(_ *waste.Model, s *waste.Session, _ *waste.Stream) io.Closer {
			return s
		})
	})
	t.Run("model", func(t *testing.T) {
		closeDuringGenerate(t, func(m *waste.Model, _ *waste.Session, _ *waste.Stream) io.Closer {
			return m
		})
	})
}

func TestCancelLatency(t *testing.T) {
	session := newSession(t, openEndless(t))
	worst := time.Duration(0)
	for i := 0; i < 20; i++ {
		ctx, cancel := context.WithCancel(background)
		stream := session.Stream(ctx, "x")
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
		cancelled := make(chan time.Time, 1)
		go func() {
			cancelled <- time.Now()
			cancel()
		}()
		_, err := drain(stream)
		took := time.Since(<-cancelled)
		wantCancelled(t, stream, err)
		if took > worst {
			worst = took
		}
	}
	t.Logf("the worst of 20 cancels took %v", worst)
	if worst > cancelBound {
		t.Fatalf("a cancel took %v", worst)
	}
}

// An interrupt of the program cancels the answer through signal.NotifyContext, and the program
// goes on.
func TestInterruptDuringGenerate(t *testing.T) {
	command := childCommand(t, "interrupted", nil, script(t, endlessModel))
	output, err := command.StdoutPipe()
	check(t, err)
	command.Stderr = os.Stderr
	check(t, command.Start())
	ready := make([]byte, len("ready\n"))
	_, err = io.ReadFull(output, ready)
	check(t, err)
	check(t, command.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(output)
	check(t, err)
	err = command.Wait()
	checkExit(t, command, err, string(rest), 0)
	if !strings.HasPrefix(string(rest), "cancelled") {
		t.Fatalf("%q", rest)
	}
}
