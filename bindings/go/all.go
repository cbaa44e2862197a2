// SPDX-License-Identifier: Apache-2.0
//go:build go1.23

// An answer for a range loop, with the compilers that know range over functions.

package waste

import (
	"context"
	"iter"
)

// All streams an answer for a range loop; a break closes the stream. The error, if one ends it,
// comes last, with an empty piece. The answer begins when the loop does.
//
//	for piece, err := range session.All(ctx, "Tell me a story.") { … }
func (s *Session) All(ctx context.Context, prompt string,
	options ...GenerateOption) iter.Seq2[Piece, error] {
	return func(yield func(Piece, error) bool) {
		stream := s.Stream(ctx, prompt, options...)
		defer stream.Close()
		for stream.Next() {
			if !yield(stream.Piece(), nil) {
				return
			}
		}
		if err := stream.Err(); err != nil {
			yield(Piece{}, err)
		}
	}
}
