// SPDX-License-Identifier: Apache-2.0
//
// Sessions without answers: messages, evaluation, and moving about in the conversation.

package waste

import (
	"context"
	"fmt"
	"sync"
)

// Session is one conversation: the tokens that it holds, and the model's state behind them. One
// call at a time; a second one gets ErrBusy, and so does every call but Stats, Tokens and Close
// while a stream lives.
type Session struct {
	model  *Model // kept while the session is
	handle *handle

	evaluating sync.Mutex // held by an evaluation: its cancel would stop another one too

	mu     sync.Mutex
	logits []float32 // of the last token that Eval ran
}

// Close cancels the session's stream or evaluation, waits for it for at most a second, and frees
// the session. It always returns nil, and a second time it does nothing.
func (s *Session) Close() error {
	s.handle.close()
	return nil
}

func (s *Session) call(f func(native uintptr) error) error { return s.handle.call(s, f) }

// AddMessage adds a whole message to the conversation. It costs nothing before an answer is
// wanted. Errors: ErrContextFull, ErrArgument, ErrUnsupported (the model has no chat format),
// ErrBusy.
func (s *Session) AddMessage(role Role, text string) error {
	return s.call(func(native uintptr) error { return nativeAddMessage(native, role, text) })
}

// Stats counts the session's work.
func (s *Session) Stats() (stats Stats, err error) {
	err = s.call(func(native uintptr) (err error) {
		stats, err = nativeSessionStats(native)
		return err
	})
	return stats, err
}

// Tokens returns the tokens that the session holds.
func (s *Session) Tokens() (tokens []int32, err error) {
	err = s.call(func(native uintptr) (err error) {
		tokens, err = nativeSessionTokens(native)
		return err
	})
	return tokens, err
}

// Reset forgets everything.
func (s *Session) Reset() error { return s.call(nativeReset) }

// Rewind goes back to the first position tokens. The next answer may run some of them again.
func (s *Session) Rewind(position int) error {
	return s.call(func(native uintptr) error { return nativeRewind(native, position) })
}

// Fork makes a second session that holds the same. It needs as much memory as a new one.
func (s *Session) Fork() (*Session, error) {
	if s.model == nil {
		return nil, ErrClosed
	}
	return s.model.newSession(s, s.handle, nativeFork)
}

// Save writes tokens and state to a file.
func (s *Session) Save(path string) error {
	return s.call(func(native uintptr) error { return nativeSave(native, path) })
}

// Load reads back what Save wrote, with the same model. A file that is damaged (ErrCorrupt), of
// another model or none of ours (ErrFormat), of a newer version (ErrVersion) or too long
// (ErrContextFull) changes nothing.
func (s *Session) Load(path string) error {
	return s.call(func(native uintptr) error { return nativeLoad(native, path) })
}

// Eval runs tokens through the model, behind those that the session holds, and keeps the logits of
// the last one for Logits. On an error the session is as it was. When ctx is done, or the session
// is closed, it ends with ErrCancelled within a layer or one read of the engine. Errors:
// ErrContextFull, ErrArgument, ErrIO, ErrCorrupt, ErrBusy, ErrCancelled.
func (s *Session) Eval(ctx context.Context, tokens []int32) error {
	rows := 1
	if len(tokens) == 0 {
		rows = 0
	}
	logits, err := s.EvalRows(ctx, tokens, rows)
	if err != nil || rows == 0 {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logits = logits
	return nil
}

// Logits copies the logits that the last Eval kept into logits, as many as fit, and returns how
// many there are: Info.VocabSize, or 0 before any Eval.
func (s *Session) Logits(logits []float32) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	copy(logits, s.logits)
	return len(s.logits)
}

// EvalRows is Eval that returns the logits of the last rows tokens, row behind row, each of
// Info.VocabSize numbers.
func (s *Session) EvalRows(ctx context.Context, tokens []int32, rows int) ([]float32, error) {
	if ctx == nil {
		ctx = context.Background()
	}
	if rows < 0 || rows > len(tokens) {
		return nil, &Error{Status: ErrArgument, Message: fmt.Sprintf(
			"rows is %d; it may be 0 to the number of tokens, %d", rows, len(tokens))}
	}
	var logits []float32
	err := s.call(func(native uintptr) error {
		info, err := s.model.Info()
		if err != nil {
			return err
		}
		kept := make([]float32, rows*info.VocabSize)
		if err := s.eval(ctx, native, tokens, kept); err != nil {
			return err
		}
		logits = kept
		return nil
	})
	return logits, err
}

func (s *Session) eval(ctx context.Context, native uintptr, tokens []int32,
	logits []float32) error {
	if !s.evaluating.TryLock() {
		return &Error{Status: ErrBusy, Message: "another call on this session is running"}
	}
	defer s.evaluating.Unlock()
	if err := ctx.Err(); err != nil {
		return &Error{Status: ErrCancelled, Message: "cancelled before it began", cause: err}
	}
	stop := s.handle.cancelCall(ctx)
	defer stop()
	return because(nativeEval(native, tokens, logits), ctx.Err())
}
