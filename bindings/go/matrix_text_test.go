// SPDX-License-Identifier: Apache-2.0
//
// Rows 5, 6 and 12 of the behaviour matrix: text that is odd, stop strings, and too much text.

package waste_test

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	waste "github.com/libwaste/waste/bindings/go"
)

func TestRow05EmojiNulInvalidUtf8(t *testing.T) {
	const want = "Hi 🐝!\x00end"
	model := open(t, script(t, `{"answers": [["Hi ", {"bytes": "f09f"}, {"bytes": "909d"}, "!",
		{"bytes": "00"}, "end"]]}`))
	session := newSession(t, model)
	stream := session.Stream(background, "a\x00b 🐝")
	defer stream.Close()
	text := ""
	for stream.Next() {
		piece := stream.Piece()
		if !utf8.ValidString(piece.Text) {
			t.Fatalf("%q is no text", piece.Text)
		}
		if piece.Text == "🐝" && (piece.Count != 2 || piece.FirstIndex != 1) {
			t.Fatalf("the emoji is of two tokens, not %+v", piece)
		}
		text += piece.Text
	}
	check(t, stream.Err())
	if text != want || stream.Result().Text != want {
		t.Fatalf("%q and %q, not %q", text, stream.Result().Text, want)
	}
	if held := heldText(t, model, session); !strings.Contains(held, "a\x00b 🐝") {
		t.Fatalf("the prompt is held as %q", held)
	}

	const bad = "caf\xe9"
	_, err := session.Ask(background, bad)
	wantError(t, err, waste.ErrArgument)
	_, err = session.Ask(background, "x", waste.Stop(bad))
	wantError(t, err, waste.ErrArgument)
	wantError(t, session.AddMessage(waste.RoleUser, bad), waste.ErrArgument)
	_, err = model.Tokenize(bad)
	wantError(t, err, waste.ErrArgument)
	_, err = model.TokenizeMarkup(bad)
	wantError(t, err, waste.ErrArgument)
	_, err = model.NewSession(waste.System(bad))
	wantError(t, err, waste.ErrArgument)
	wantText(t, session, "y", want) // a stop that was refused left nothing behind
}

// Whatever the size of the buffer, no character is cut that fits into it.
func TestRow05ReaderCutsNoCharacter(t *testing.T) {
	const want = "Grüße 你好 🐝👩‍🚀 end"
	model := open(t, script(t, `{"answers": [["Grüße 你好 🐝👩‍🚀 end"]]}`))
	for size := 1; size < 40; size++ {
		reader := model.NewChat().Reader(background, "x")
		buffer, all := make([]byte, size), ""
		for {
			count, err := reader.Read(buffer)
			if size >= utf8.UTFMax && !utf8.Valid(buffer[:count]) {
				t.Fatalf("with %d bytes: %q", size, buffer[:count])
			}
			all += string(buffer[:count])
			if err == io.EOF {
				break
			}
			check(t, err)
		}
		check(t, reader.Close())
		if all != want {
			t.Fatalf("with %d bytes: %q", size, all)
		}
	}
	var copied strings.Builder
	_, err := io.Copy(&copied, model.NewChat().Reader(background, "x"))
	check(t, err)
	if copied.String() != want {
		t.Fatalf("copied %q", copied.String())
	}
	check(t, iotest.TestReader(model.NewChat().Reader(background, "x"), []byte(want)))
}

func TestRow06StopStringAcrossPieces(t *testing.T) {
	model := open(t, script(t, `{"answers": [["one E", "N", "D two"], ["one E", "N", "X two"]]}`))
	session := newSession(t, model)
	for _, want := range []string{"one ", "one ENX two"} {
		stream, text := session.Stream(background, "x", waste.Stop("END")), ""
		for stream.Next() {
			text += stream.Piece().Text
			if strings.HasSuffix(text, "E") || strings.HasSuffix(text, "EN") {
				t.Fatalf("a prefix of the stop string was handed out: %q", text)
			}
		}
		check(t, stream.Err())
		if result := stream.Result(); text != want || result.FinishReason != waste.FinishStop {
			t.Fatalf("%q, %v", text, result.FinishReason)
		}
	}
}

func TestRow12LongerThanTheContext(t *testing.T) {
	session := newSession(t, openMini(t), waste.WithContext(128))
	wantText(t, session, capital, rome)
	before, err := session.Tokens()
	check(t, err)
	_, err = session.Ask(background, strings.Repeat(capital, 100))
	wantError(t, err, waste.ErrContextFull)
	wantError(t, session.AddMessage(waste.RoleUser, strings.Repeat(capital, 100)),
		waste.ErrContextFull)
	wantError(t, session.Eval(background, make([]int32, 1000)), waste.ErrContextFull)
	after, err := session.Tokens()
	check(t, err)
	if len(before) != len(after) {
		t.Fatalf("%d tokens became %d", len(before), len(after))
	}
	answer, err := session.Ask(background, "Count from 1 to 9. "+strings.Repeat("1, 2, ", 8),
		waste.Raw(), waste.LogitBias(1986, -1e9), waste.LogitBias(1988, -1e9))
	check(t, err)
	stats, err := session.Stats()
	check(t, err)
	if answer.FinishReason != waste.FinishLength || stats.Position != 128 || stats.Context != 128 {
		t.Fatalf("%v at %d", answer.FinishReason, stats.Position)
	}
}
