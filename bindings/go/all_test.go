// SPDX-License-Identifier: Apache-2.0
//go:build go1.23

// Answers in range loops, with the compilers that know range over functions.

package waste_test

import (
	"context"
	"strings"
	"testing"

	waste "github.com/libwaste/waste/bindings/go"
)

func TestAll(t *testing.T) {
	session := newSession(t, openMini(t))
	text := ""
	for piece, err := range session.All(background, capital) {
		check(t, err)
		text += piece.Text
	}
	if text != rome {
		t.Fatalf("%q", text)
	}
}

func TestRow08BreakOutOfTheRangeLoop(t *testing.T) {
	model := open(t, script(t, `{"answers": [["a", "b", {"repeat": "c"}], ["second"]]}`))
	session := newSession(t, model)
	for piece, err := range session.All(background, "x") {
		check(t, err)
		if piece.Text == "b" {
			break
		}
	}
	if held := heldText(t, model, session); !strings.HasSuffix(held, "ab") {
		t.Fatalf("%q is held", held)
	}
	wantText(t, session, "y", "second")
}

func TestAllEndsWithTheError(t *testing.T) {
	session := newSession(t, openEndless(t))
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	pieces, last := 0, error(nil)
	for piece, err := range session.All(ctx, "x") {
		last = err
		if pieces++; pieces == 3 {
			cancel()
		}
		if err != nil && piece.Text != "" {
			t.Fatalf("%+v with %v", piece, err)
		}
	}
	wantError(t, last, waste.ErrCancelled, context.Canceled)
	if pieces != 4 {
		t.Fatalf("%d rounds", pieces)
	}
	busy := session.Stream(background, "x")
	defer busy.Close()
	for _, err := range session.All(background, "x") {
		wantError(t, err, waste.ErrBusy)
		return
	}
	t.Fatal("no error")
}
