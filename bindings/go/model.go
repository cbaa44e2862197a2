// SPDX-License-Identifier: Apache-2.0
//
// Models: opening, describing, tokens, and making sessions.

package waste

import (
	"context"
	"runtime"
	"strings"
)

// Model is an open model: weights, cache and threads, shared by its sessions. Any number of
// goroutines may use it.
type Model struct{ handle *handle }

// Open is OpenContext without a context.
func Open(path string, options ...OpenOption) (*Model, error) {
	return OpenContext(context.Background(), path, options...)
}

// OpenContext opens a container, which is a folder such as "mini.waste", and returns when its
// shared weights are loaded. When ctx is done meanwhile it ends with ErrCancelled. Errors: those
// of Plan, ErrRAMBudget with Error.Needed, ErrNoMemory, ErrABI, ErrNoCgo.
func OpenContext(ctx context.Context, path string, options ...OpenOption) (*Model, error) {
	if err := load(); err != nil {
		return nil, err
	}
	config := openConfigOf(options)
	var native uintptr
	err := runJob(ctx, config.jobConfig, func() (uintptr, error) {
		return nativeOpenJob(path, config)
	}, func(job uintptr) (err error) {
		native, err = nativeJobModel(job)
		return err
	})
	if err != nil {
		return nil, err
	}
	h, err := newHandle(native, nil)
	if err != nil {
		return nil, err
	}
	m := &Model{h}
	runtime.SetFinalizer(m, func(m *Model) { go m.handle.shut(nil) })
	return m, nil
}

// Close cancels what runs, closes the model's sessions, waits for both for at most a second, and
// frees the model. It always returns nil, and a second time it does nothing.
func (m *Model) Close() error {
	m.handle.close()
	return nil
}

// Info describes the model.
func (m *Model) Info() (info Info, err error) {
	err = m.handle.call(m, func(native uintptr) (err error) {
		info, err = nativeModelInfo(native)
		return err
	})
	return info, err
}

// Stats counts the work of all sessions.
func (m *Model) Stats() (stats Stats, err error) {
	err = m.handle.call(m, func(native uintptr) (err error) {
		stats, err = nativeModelStats(native)
		return err
	})
	return stats, err
}

// LogLines returns what the model has to say (what was fallen back to) and was not returned
// before.
func (m *Model) LogLines() (lines []string, err error) {
	err = m.handle.call(m, func(native uintptr) (err error) {
		lines, err = logLines(native)
		return err
	})
	return lines, err
}

// Tokenize turns plain text into tokens; special tokens in it are text.
func (m *Model) Tokenize(text string) ([]int32, error) { return m.tokenize(text, false) }

// TokenizeMarkup takes special tokens in the text ("<|open|>") as what they mean. Never use it for
// text of a user.
func (m *Model) TokenizeMarkup(text string) ([]int32, error) { return m.tokenize(text, true) }

func (m *Model) tokenize(text string, markup bool) (tokens []int32, err error) {
	err = m.handle.call(m, func(native uintptr) (err error) {
		tokens, err = nativeTokenize(native, text, markup)
		return err
	})
	return tokens, err
}

// Detokenize turns tokens into text, special ones too. Each run of bytes that is no UTF-8 becomes
// one U+FFFD.
func (m *Model) Detokenize(tokens []int32) (string, error) {
	bytes, err := m.DetokenizeBytes(tokens)
	return strings.ToValidUTF8(string(bytes), "\uFFFD"), err
}

// DetokenizeBytes returns the raw bytes of the tokens, which may end inside a character.
func (m *Model) DetokenizeBytes(tokens []int32) (bytes []byte, err error) {
	err = m.handle.call(m, func(native uintptr) (err error) {
		bytes, err = nativeDetokenize(native, tokens)
		return err
	})
	return bytes, err
}

// NewSession begins a conversation, and reserves memory for a whole context of it within the
// model's budget. Errors: ErrRAMBudget, ErrNoMemory, ErrArgument; with System also ErrContextFull
// and ErrUnsupported (the model has no chat format).
func (m *Model) NewSession(options ...SessionOption) (*Session, error) {
	var config sessionConfig
	for _, option := range options {
		if option != nil {
			option.sessionOption(&config)
		}
	}
	return m.newSession(m, m.handle, func(model uintptr) (uintptr, error) {
		return nativeSession(model, config)
	})
}

// NewChat is NewSession for code that reads in one line: its error, if any, is returned by every
// method of the session.
func (m *Model) NewChat(options ...SessionOption) *Session {
	session, err := m.NewSession(options...)
	if err != nil {
		return &Session{model: m, handle: failedHandle(err)}
	}
	return session
}

// newSession owns what create makes inside of from.
func (m *Model) newSession(owner any, from *handle,
	create func(native uintptr) (uintptr, error)) (*Session, error) {
	s := &Session{model: m}
	err := from.call(owner, func(native uintptr) error {
		session, err := create(native)
		if err != nil {
			return err
		}
		s.handle, err = newHandle(session, m.handle)
		return err
	})
	if err != nil {
		return nil, err
	}
	runtime.SetFinalizer(s, func(s *Session) { go s.handle.shut(nil) })
	return s, nil
}
