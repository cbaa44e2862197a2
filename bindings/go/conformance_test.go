// SPDX-License-Identifier: Apache-2.0
//
// The conformance suite of all bindings: bindings/conformance/*.json, byte for byte.

package waste_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	waste "github.com/libwaste/waste/bindings/go"
)

type suite struct {
	Model    string
	Context  int
	Cases    []suiteCase
	Tokenize []struct {
		Text   string
		Markup bool
		Tokens []int32
	}
}

type suiteCase struct {
	Name     string
	Script   string
	System   *string
	Thinking bool
	Turns    []turn
}

type turn struct {
	Prompt      string
	Options     turnOptions
	Stop        []string
	StopTokens  []int32 `json:"stop_tokens"`
	Bias        [][2]float64
	CancelAfter int `json:"cancel_after"`
	Expect      *expectation
}

type turnOptions struct {
	MaxTokens        int     `json:"max_tokens"`
	Temperature      float64 `json:"temperature"`
	TopK             int     `json:"top_k"`
	TopP             float64 `json:"top_p"`
	MinP             float64 `json:"min_p"`
	RepeatPenalty    float64 `json:"repeat_penalty"`
	PresencePenalty  float64 `json:"presence_penalty"`
	FrequencyPenalty float64 `json:"frequency_penalty"`
	PenaltyWindow    int     `json:"penalty_window"`
	Seed             int64   `json:"seed"`
	Logprobs         bool    `json:"logprobs"`
	Raw              bool    `json:"raw"`
	MarkupOut        bool    `json:"markup_out"`
}

type expectation struct {
	Tokens   []int32
	Text     string
	Thinking string
	Finish   string
	Logprobs []float64
	Position int
	Error    string
}

func readSuite(t *testing.T, name string) suite {
	t.Helper()
	file, err := os.Open(filepath.Join(conformance, name))
	check(t, err)
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields() // what this test does not know it would not check
	var read suite
	check(t, decoder.Decode(&read))
	if len(read.Cases) == 0 {
		t.Fatal("no cases")
	}
	return read
}

func (u turn) options() []waste.GenerateOption {
	o := u.Options
	list := []waste.GenerateOption{
		waste.MaxTokens(o.MaxTokens), waste.Temperature(o.Temperature), waste.TopK(o.TopK),
		waste.TopP(o.TopP), waste.MinP(o.MinP), waste.RepeatPenalty(o.RepeatPenalty),
		waste.PresencePenalty(o.PresencePenalty), waste.FrequencyPenalty(o.FrequencyPenalty),
		waste.PenaltyWindow(o.PenaltyWindow), waste.Seed(o.Seed), waste.Stop(u.Stop...),
		waste.StopTokens(u.StopTokens...),
	}
	if o.Logprobs {
		list = append(list, waste.Logprobs())
	}
	if o.Raw {
		list = append(list, waste.Raw())
	}
	if o.MarkupOut {
		list = append(list, waste.MarkupOut())
	}
	for _, bias := range u.Bias {
		list = append(list, waste.LogitBias(int32(bias[0]), bias[1]))
	}
	return list
}

// run does one turn on the session; what came of it.
func (u turn) run(t *testing.T, session *waste.Session) expectation {
	t.Helper()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	stream := session.Stream(ctx, u.Prompt, u.options()...)
	defer stream.Close()
	for pieces := 1; stream.Next(); pieces++ {
		if pieces == u.CancelAfter {
			cancel()
		}
	}
	result := stream.Result()
	have := expectation{Tokens: result.Tokens, Text: result.Text, Thinking: result.Thinking,
		Logprobs: result.Logprobs}
	var failure *waste.Error
	if err := stream.Err(); err == nil || errors.Is(err, context.Canceled) {
		have.Finish = result.FinishReason.String()
	} else if errors.As(err, &failure) {
		have.Error = failure.Status.String()
	} else {
		t.Fatal(err)
	}
	tokens, err := session.Tokens()
	check(t, err)
	have.Position = len(tokens)
	return have
}

func (c suiteCase) run(t *testing.T, s suite, model *waste.Model) {
	if model == nil {
		path, err := filepath.Abs(filepath.Join(conformance, "scripts", c.Script+".json"))
		check(t, err)
		model = open(t, "test:"+path, waste.WithContext(s.Context))
	}
	var options []waste.SessionOption
	if c.System != nil {
		options = append(options, waste.System(*c.System))
	}
	if c.Thinking {
		options = append(options, waste.Thinking())
	}
	session := newSession(t, model, options...)
	for i, u := range c.Turns {
		if u.Expect == nil {
			t.Fatalf("turn %d expects nothing", i)
		}
		want, have := *u.Expect, u.run(t, session)
		if len(want.Logprobs) != len(have.Logprobs) {
			t.Fatalf("turn %d: %d log-probabilities, not %d", i, len(have.Logprobs),
				len(want.Logprobs))
		}
		for n := range want.Logprobs {
			if math.Abs(want.Logprobs[n]-have.Logprobs[n]) > 1e-3 {
				t.Fatalf("turn %d: log-probability %d is %v, not %v", i, n, have.Logprobs[n],
					want.Logprobs[n])
			}
		}
		want.Logprobs, have.Logprobs = nil, nil
		if len(want.Tokens) == 0 && len(have.Tokens) == 0 {
			want.Tokens, have.Tokens = nil, nil
		}
		if !reflect.DeepEqual(want, have) {
			t.Fatalf("turn %d:\n have %+v\n want %+v", i, have, want)
		}
	}
}

func TestConformanceMini(t *testing.T) {
	s := readSuite(t, "mini.json")
	model := open(t, miniModel, waste.WithContext(s.Context))
	for _, c := range s.Cases {
		c := c
		t.Run(c.Name, func(t *testing.T) { c.run(t, s, model) })
	}
	for _, entry := range s.Tokenize {
		entry := entry
		t.Run("tokenize_"+entry.Text, func(t *testing.T) {
			tokenize := model.Tokenize
			if entry.Markup {
				tokenize = model.TokenizeMarkup
			}
			tokens, err := tokenize(entry.Text)
			check(t, err)
			if len(tokens)+len(entry.Tokens) > 0 && !reflect.DeepEqual(tokens, entry.Tokens) {
				t.Fatalf("%v, not %v", tokens, entry.Tokens)
			}
			text, err := model.Detokenize(tokens)
			check(t, err)
			if text != entry.Text {
				t.Fatalf("%q came back as %q", entry.Text, text)
			}
		})
	}
}

func TestConformanceScripted(t *testing.T) {
	s := readSuite(t, "scripted.json")
	for _, c := range s.Cases {
		c := c
		t.Run(c.Name, func(t *testing.T) { c.run(t, s, nil) })
	}
}
