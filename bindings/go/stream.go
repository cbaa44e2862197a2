// SPDX-License-Identifier: Apache-2.0
//
// Answers, pulled piece by piece. Everything else that answers is made of Stream.

package waste

import (
	"context"
	"runtime"
	"strings"
	"sync"
)

// Most bytes of text that one piece has.
const pieceBytes = 4096

// Stream is one answer, pulled piece by piece in the manner of bufio.Scanner:
//
//	stream := session.Stream(ctx, "Tell me a story.")
//	defer stream.Close()
//	for stream.Next() {
//		fmt.Print(stream.Piece().Text)
//	}
//	if err := stream.Err(); err != nil { … }
//
// The engine works while Next is inside, and never ahead. A stream is for one goroutine; only
// Close, and cancelling its context, are for any.
type Stream struct {
	session *Session // kept while the stream is
	ctx     context.Context
	handle  *handle
	buffer  []byte

	mu        sync.Mutex // held by Next, and by Close where no Next runs
	done      bool
	abandoned bool // closed before it was done
	piece     Piece
	text      strings.Builder
	thinking  strings.Builder
	logprobs  bool
	result    Result
	stats     Stats
	err       error
}

// Stream puts prompt, as a user's message, behind the conversation and streams the answer. What is
// wrong (ErrContextFull, ErrArgument, ErrUnsupported, ErrBusy; the session is as it was then) is
// told by Stream.Err after the first Next. Nothing is computed before that.
//
// When ctx is done the stream ends, within a layer or one read of the engine, with an error that
// is both ErrCancelled and the context's. The session then holds the prompt and exactly what was
// handed out.
func (s *Session) Stream(ctx context.Context, prompt string, options ...GenerateOption) *Stream {
	return s.stream(ctx, &prompt, options)
}

// Continue streams an answer without a new prompt: to the messages that were added, or the rest of
// one that was cut short.
func (s *Session) Continue(ctx context.Context, options ...GenerateOption) *Stream {
	return s.stream(ctx, nil, options)
}

// Ask is Stream for callers that want the whole answer. With an error, the result is what came
// before it.
func (s *Session) Ask(ctx context.Context, prompt string,
	options ...GenerateOption) (Result, error) {
	stream := s.Stream(ctx, prompt, options...)
	defer stream.Close()
	for stream.Next() {
	}
	return stream.Result(), stream.Err()
}

func (s *Session) stream(ctx context.Context, prompt *string, options []GenerateOption) *Stream {
	if ctx == nil {
		ctx = context.Background()
	}
	var config generateConfig
	for _, option := range options {
		if option != nil {
			option(&config)
		}
	}
	stream := &Stream{session: s, ctx: ctx, logprobs: config.logprobs}
	err := s.call(func(native uintptr) error {
		generation, err := nativeGenerate(native, prompt, config)
		if err != nil {
			return err
		}
		stream.handle, err = newHandle(generation, s.handle)
		return err
	})
	if err != nil {
		stream.done, stream.err = true, err
		return stream
	}
	stream.buffer = make([]byte, pieceBytes)
	runtime.SetFinalizer(stream, func(s *Stream) { go s.handle.shut(nil) })
	return stream
}

// Next waits for the next piece and reports whether there is one. A piece that the engine had
// ready when the context was done is still handed out.
func (s *Stream) Next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.piece = Piece{}
	if s.done {
		if s.abandoned && s.err == nil {
			s.err = closedStream()
		}
		return false
	}
	err := s.handle.call(s, func(native uintptr) (err error) {
		stop := s.handle.cancelWith(s.ctx)
		defer stop()
		s.piece, s.result.FinishReason, err = nativeNext(native, s.buffer)
		if err != nil || s.piece.Text == "" {
			s.collect(native)
		}
		return err
	})
	if err == nil && s.piece.Text != "" {
		s.add(s.piece)
		return true
	}
	if err == ErrClosed { // between two calls of Next
		err, s.result.FinishReason = closedStream(), FinishCancelled
	}
	if s.ctx != nil {
		err = because(err, s.ctx.Err())
	}
	s.err = err
	s.end()
	return false
}

func closedStream() error {
	return &Error{Status: ErrCancelled, Message: "the stream was closed", cause: ErrClosed}
}

func (s *Stream) add(piece Piece) {
	if piece.Channel == ChannelThinking {
		s.thinking.WriteString(piece.Text)
	} else {
		s.text.WriteString(piece.Text)
	}
}

// collect takes out of the generation what is asked for when it is gone.
func (s *Stream) collect(native uintptr) {
	tokens, logprobs, err := nativeGenerationTokens(native)
	if err == nil {
		s.result.Tokens = tokens
	}
	if err == nil && s.logprobs {
		s.result.Logprobs = logprobs
	}
	stats, err := nativeGenerationStats(native)
	if err != nil {
		return
	}
	s.stats = stats
	s.result.Usage = Usage{stats.PromptTokens, stats.GeneratedTokens, stats.Prefill, stats.Decode}
}

// end gives the session free.
func (s *Stream) end() {
	s.done = true
	s.result.Text, s.result.Thinking = s.text.String(), s.thinking.String()
	s.handle.shut(nil)
}

// Piece is what the last Next got.
func (s *Stream) Piece() Piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.piece
}

// Err is what ended the stream, or nil if it is the end of the answer, or Close.
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Result is the whole answer, after Next has returned false or the stream was closed.
func (s *Stream) Result() Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.result
}

// Stats counts the work of this answer so far.
func (s *Stream) Stats() (Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return s.stats, nil
	}
	var stats Stats
	err := s.handle.call(s, func(native uintptr) (err error) {
		stats, err = nativeGenerationStats(native)
		return err
	})
	return stats, err
}

// Close cancels the answer if it is not finished and gives the session free, which then holds what
// was handed out. A Next of another goroutine that runs meanwhile, or comes later, ends with an
// error that is both ErrCancelled and ErrClosed; Close waits for the former for at most a second.
// It always returns nil, and a second time it does nothing.
func (s *Stream) Close() error {
	if s.mu.TryLock() {
		if !s.done {
			s.abandon()
		}
		s.mu.Unlock()
	}
	s.handle.close()
	return nil
}

// abandon ends an answer that nobody reads to its end. The library cuts it where the reader is
// when it is asked for more.
func (s *Stream) abandon() {
	s.handle.cancel()
	_ = s.handle.call(s, func(native uintptr) error {
		_, reason, err := nativeNext(native, s.buffer)
		s.result.FinishReason = reason
		s.collect(native)
		return err
	})
	s.abandoned = true
	s.end()
}
