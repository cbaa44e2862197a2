// SPDX-License-Identifier: Apache-2.0
//
// An answer as bytes, for io.Copy.

package waste

import (
	"context"
	"io"
	"unicode/utf8"
)

// Reader streams the response, without what is thought before it, as bytes: each Read returns
// whole characters of at most one piece. Only a buffer that is too small for one character gets it
// in parts. Closing the reader is closing the stream.
func (s *Session) Reader(ctx context.Context, prompt string,
	options ...GenerateOption) io.ReadCloser {
	return &reader{stream: s.Stream(ctx, prompt, options...)}
}

type reader struct {
	stream *Stream
	rest   string // of the piece, not read yet
}

// next makes sure that there is something to read.
func (r *reader) next() error {
	for r.rest == "" {
		if !r.stream.Next() {
			if err := r.stream.Err(); err != nil {
				return err
			}
			return io.EOF
		}
		if piece := r.stream.Piece(); piece.Channel == ChannelResponse {
			r.rest = piece.Text
		}
	}
	return nil
}

func (r *reader) Read(buffer []byte) (int, error) {
	if len(buffer) == 0 {
		return 0, nil
	}
	if err := r.next(); err != nil {
		return 0, err
	}
	size := len(r.rest)
	if size > len(buffer) {
		size = len(buffer)
		for size > 0 && !utf8.RuneStart(r.rest[size]) {
			size--
		}
		if size == 0 {
			size = len(buffer)
		}
	}
	copy(buffer, r.rest[:size])
	r.rest = r.rest[size:]
	return size, nil
}

// WriteTo hands each piece to w at once; io.Copy uses it.
func (r *reader) WriteTo(w io.Writer) (int64, error) {
	var total int64
	for {
		err := r.next()
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		size, err := io.WriteString(w, r.rest)
		total += int64(size)
		r.rest = r.rest[size:]
		if err != nil {
			return total, err
		}
	}
}

func (r *reader) Close() error { return r.stream.Close() }
