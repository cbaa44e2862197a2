// SPDX-License-Identifier: Apache-2.0
//
// The rest of the API: what the conformance suite and the behaviour matrix do not touch.

package waste_test

import (
	"context"
	"errors"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	waste "github.com/libwaste/waste/bindings/go"
)

func TestUseAfterCloseAndDoubleClose(t *testing.T) {
	model := openMini(t)
	session := newSession(t, model)
	fork, err := session.Fork()
	check(t, err)
	check(t, fork.Close())
	check(t, fork.Close())
	wantError(t, fork.Reset(), waste.ErrClosed)
	wantText(t, session, capital, rome)
	stream := session.Stream(background, capital)
	check(t, model.Close())
	check(t, model.Close())

	_, infoErr := model.Info()
	_, statsErr := model.Stats()
	_, logErr := model.LogLines()
	_, tokenizeErr := model.Tokenize("x")
	_, detokenizeErr := model.DetokenizeBytes([]int32{1})
	_, newErr := model.NewSession()
	_, chatErr := model.NewChat().Ask(background, "x")
	_, askErr := session.Ask(background, "x")
	_, forkErr := session.Fork()
	_, tokensErr := session.Tokens()
	_, rowsErr := session.EvalRows(background, []int32{1}, 1)
	for i, err := range []error{infoErr, statsErr, logErr, tokenizeErr, detokenizeErr, newErr,
		chatErr, askErr, forkErr, tokensErr, rowsErr, session.Reset(), session.Rewind(0),
		session.Save("x"), session.Load("x"), session.AddMessage(waste.RoleUser, "x"),
		session.Eval(background, []int32{1})} {
		if !errors.Is(err, waste.ErrClosed) {
			t.Errorf("call %d on a closed object: %v", i, err)
		}
	}
	if stream.Next() {
		t.Fatal("a closed stream goes on")
	}
	wantError(t, stream.Err(), waste.ErrClosed, waste.ErrCancelled)
	check(t, stream.Close())
	check(t, session.Close())
}

func TestZeroValuesAreClosed(t *testing.T) {
	var model waste.Model
	_, err := model.Info()
	wantError(t, err, waste.ErrClosed)
	check(t, model.Close())
	var session waste.Session
	_, err = session.Ask(nil, "x") //nolint:staticcheck // a nil context is the background
	wantError(t, err, waste.ErrClosed)
	_, err = session.Fork()
	wantError(t, err, waste.ErrClosed)
	check(t, session.Close())
	var stream waste.Stream
	check(t, stream.Close())
	if stream.Next() {
		t.Fatal("a stream of nothing has a piece")
	}
}

func TestInfoStatsPlanVersion(t *testing.T) {
	model := openMini(t)
	info, err := model.Info()
	check(t, err)
	if info.Name != "kimi-k3" || info.VocabSize != 2048 || info.LayerCount != 8 ||
		info.HiddenSize != 192 || info.ExpertCount != 32 || info.ExpertsPerToken != 4 ||
		info.Context != 512 || info.ExpertBytes != 16384 || info.ContainerBytes < 1<<20 ||
		info.BudgetBytes <= 0 || info.CacheSlots <= 0 || info.Threads < 1 || info.ISA < 1 ||
		!info.Thinking || info.EOSToken != 1986 || !info.HasChat || info.TokenTrunkBytes < 1<<18 ||
		info.TokenTrunkBytes > info.ContainerBytes || info.TokenFlops < 1<<20 {
		t.Fatalf("%+v", info)
	}
	session := newSession(t, model)
	stream := session.Stream(background, capital)
	for stream.Next() {
		stats, err := stream.Stats()
		check(t, err)
		if stats.Position != stream.Piece().Position || stats.GeneratedTokens < 1 {
			t.Fatalf("%+v behind %+v", stats, stream.Piece())
		}
	}
	ended, err := stream.Stats()
	check(t, err)
	usage := stream.Result().Usage
	if ended.FinishReason != waste.FinishStop || usage.GeneratedTokens != 15 ||
		usage.PromptTokens < 20 || usage.Prefill <= 0 || usage.Decode <= 0 ||
		ended.ExpertsHit+ended.ExpertsMissed == 0 {
		t.Fatalf("%+v, %+v", ended, usage)
	}
	ofSession, err := session.Stats()
	check(t, err)
	ofModel, err := model.Stats()
	check(t, err)
	if ofSession.GeneratedTokens != 15 || ofSession.Context != 512 || ofSession.Position != 43 ||
		ofSession.MemoryBytes <= 0 || ofModel.GeneratedTokens != 15 || ofModel.MemoryBytes <= 0 ||
		ofModel.PeakRSSBytes <= 0 {
		t.Fatalf("%+v, %+v", ofSession, ofModel)
	}
	plan, err := waste.Plan(miniModel, waste.WithContext(512))
	check(t, err)
	if !plan.Fits || plan.Floor != plan.Trunk+plan.State+plan.Scratch+plan.Staging ||
		plan.Budget < plan.Floor+plan.Cache || plan.Recommended < plan.Floor || plan.Usable == 0 ||
		plan.Reserved < 0 {
		t.Fatalf("%+v", plan)
	}
	if strings.Count(waste.Version(), ".") != 2 {
		t.Fatalf("version %q", waste.Version())
	}
}

func TestEveryUseOfAnExpertIsCountedOnce(t *testing.T) {
	for name, options := range map[string][]waste.OpenOption{
		"lookahead": {waste.WithContext(256)},
		"without":   {waste.WithContext(256), waste.WithoutLookahead()},
	} {
		plan, err := waste.Plan(miniModel, options...)
		check(t, err)
		model := open(t, miniModel, append(options, waste.WithRAMBudget(plan.Floor))...)
		info, err := model.Info() // with the floor for a budget, nothing fills the cache
		check(t, err)
		session := newSession(t, model)
		for i := 0; i < 3; i++ {
			check(t, session.Eval(background, []int32{65}))
		}
		stats, err := model.Stats()
		check(t, err)
		unforeseen := stats.ExpertsMissed - stats.ExpertsForeseen // the first reads at least
		if stats.ExpertsHit+stats.ExpertsMissed != 3*7*4 ||       // tokens, layers, experts
			stats.ExpertsForeseen < 0 || unforeseen <= 0 ||
			stats.SpeculativeBytes != stats.SpeculativeReads*info.ExpertBytes ||
			stats.BytesRead < unforeseen*info.ExpertBytes+stats.SpeculativeBytes ||
			stats.ReadStalls == 0 && stats.ReadTime > 0 ||
			stats.ReadStalls > stats.ExpertsMissed+stats.SpeculativeReads {
			t.Fatalf("%s: %+v", name, stats)
		}
		if name == "without" && stats.ExpertsForeseen+stats.SpeculativeReads != 0 {
			t.Fatalf("%+v", stats)
		}
	}
}

func TestOpenOptionsReachTheLibrary(t *testing.T) {
	model := open(t, miniModel, waste.WithThreads(1), waste.WithContext(256),
		waste.WithRAMBudget(32<<20), waste.WithIO(waste.IOBuffered), waste.WithChecksums(),
		waste.WithoutLookahead(), waste.WithArithmetic(waste.ArithmeticExact),
		waste.WithISA(waste.ISAScalar), waste.WithReadLanes(3), nil)
	info, err := model.Info()
	check(t, err)
	if info.Threads != 1 || info.Context != 256 || info.BudgetBytes != 32<<20 || info.DirectIO ||
		info.ISA != waste.ISAScalar || info.ReadLanes != 3 {
		t.Fatalf("%+v", info)
	}
	session := newSession(t, model, waste.WithContext(64))
	stats, err := session.Stats()
	check(t, err)
	if stats.Context != 64 {
		t.Fatalf("%+v", stats)
	}
	_, err = waste.Open(miniModel, waste.WithISA(waste.ISANEON))
	wantError(t, err, waste.ErrUnsupported)
	for _, option := range []waste.OpenOption{waste.WithThreads(-1), waste.WithContext(-1),
		waste.WithThreads(math.MaxInt64), waste.WithRAMBudget(-1), waste.WithIO(7),
		waste.WithArithmetic(7), waste.WithISA(70), waste.WithReadLanes(-1),
		waste.WithReadLanes(33), waste.WithReadLanes(math.MaxInt64)} {
		_, err = waste.Open(miniModel, option)
		wantError(t, err, waste.ErrArgument)
	}
	_, err = session.Ask(background, "x", waste.Temperature(-1))
	wantError(t, err, waste.ErrArgument)
}

// firstCPU is the first that this process may use.
func firstCPU(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	check(t, err)
	for _, line := range strings.Split(string(status), "\n") {
		if list := strings.TrimPrefix(line, "Cpus_allowed_list:\t"); list != line {
			return strings.FieldsFunc(list, func(r rune) bool { return r == '-' || r == ',' })[0]
		}
	}
	t.Fatal("the system tells no CPUs")
	return ""
}

func TestCPUListsReachTheLibrary(t *testing.T) {
	first := firstCPU(t)
	model := open(t, miniModel, waste.WithCPUList(first))
	info, err := model.Info()
	check(t, err)
	if info.Threads != 1 {
		t.Fatalf("%+v", info)
	}
	wantText(t, newSession(t, model), capital, rome)
	for _, list := range []string{"x", first + ",", "8191", first + "\x00", "\xff"} {
		_, err := waste.Open(miniModel, waste.WithCPUList(list))
		wantError(t, err, waste.ErrArgument)
		if !strings.Contains(err.Error(), "cpu_list") {
			t.Fatal(err)
		}
	}
}

func TestMessagesAndContinue(t *testing.T) {
	session := newSession(t, openMini(t))
	check(t, session.AddMessage(waste.RoleSystem, "You are terse."))
	check(t, session.AddMessage(waste.RoleUser, capital))
	text, err := drain(session.Continue(background))
	check(t, err)
	if text != rome {
		t.Fatalf("%q", text)
	}
	answer, err := session.Ask(background, story, waste.MaxTokens(5))
	check(t, err)
	rest, err := drain(session.Continue(background))
	check(t, err)
	check(t, session.Rewind(0))
	check(t, session.AddMessage(waste.RoleSystem, "You are terse."))
	wantText(t, session, capital, rome)
	wantText(t, session, story, answer.Text+rest)
	wantError(t, session.AddMessage(7, "x"), waste.ErrArgument)
}

func TestEvalLogitsRewindFork(t *testing.T) {
	model := openMini(t)
	tokens, err := model.Tokenize(strings.Repeat("The capital of Italy is Rome. ", 25))
	check(t, err)
	if len(tokens) < 70 {
		t.Fatalf("%d tokens", len(tokens))
	}
	vocab := 2048
	whole, other := newSession(t, model), newSession(t, model)
	if whole.Logits(nil) != 0 {
		t.Fatal("logits of nothing")
	}
	rows, err := whole.EvalRows(background, tokens, 70)
	check(t, err)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	cancellable, err := other.EvalRows(ctx, tokens, 70)
	check(t, err)
	if len(rows) != 70*vocab || !reflect.DeepEqual(rows, cancellable) {
		t.Fatal("an evaluation with a context that can be done has other logits")
	}

	fork, err := whole.Fork()
	check(t, err)
	defer fork.Close()
	check(t, whole.Rewind(len(tokens)-1))
	check(t, whole.Eval(background, tokens[len(tokens)-1:]))
	last := make([]float32, vocab+1)
	if whole.Logits(last) != vocab || whole.Logits(last[:3]) != vocab {
		t.Fatal("one row has other than the vocabulary's logits")
	}
	for i := range last[:vocab] {
		if math.Abs(float64(last[i]-rows[69*vocab+i])) > 1e-3 {
			t.Fatalf("logit %d is %v after a rewind, not %v", i, last[i], rows[69*vocab+i])
		}
	}
	held, err := fork.Tokens()
	check(t, err)
	if !reflect.DeepEqual(held, tokens) {
		t.Fatal("a fork holds other tokens")
	}

	cancel()
	before, err := other.Tokens()
	check(t, err)
	wantError(t, other.Eval(ctx, tokens[:10]), waste.ErrCancelled, context.Canceled)
	wantError(t, other.Eval(background, []int32{5, 1 << 20}), waste.ErrArgument)
	after, err := other.Tokens()
	check(t, err)
	if !reflect.DeepEqual(before, after) {
		t.Fatalf("%d tokens became %d", len(before), len(after))
	}
	_, err = other.EvalRows(background, tokens[:2], 3)
	wantError(t, err, waste.ErrArgument)
	check(t, other.Eval(background, nil))
	wantError(t, other.Rewind(-1), waste.ErrArgument)
}

func TestDetokenize(t *testing.T) {
	model := open(t, script(t, `{"answers": [["x"]]}`)) // every byte is a token
	bytes, err := model.DetokenizeBytes([]int32{0xf0, 0x9f, 0x90, 'a', 0})
	check(t, err)
	if string(bytes) != "\xf0\x9f\x90a\x00" {
		t.Fatalf("%q", bytes)
	}
	text, err := model.Detokenize([]int32{0xf0, 0x9f, 0x90, 'a', 0})
	check(t, err)
	if text != "\uFFFDa\x00" {
		t.Fatalf("%q", text)
	}
	_, err = model.Detokenize([]int32{-1})
	wantError(t, err, waste.ErrArgument)
	empty, err := model.Detokenize(nil)
	check(t, err)
	if empty != "" {
		t.Fatalf("%q", empty)
	}
	many := make([]int32, 100000)
	for i := range many {
		many[i] = 'z'
	}
	long, err := model.Detokenize(many)
	check(t, err)
	back, err := model.Tokenize(long)
	check(t, err)
	if long != strings.Repeat("z", len(many)) || len(back) == 0 {
		t.Fatalf("%d bytes, %d tokens", len(long), len(back))
	}
}

func TestThinkingChannel(t *testing.T) {
	session := newSession(t, openMini(t), waste.Thinking())
	stream := session.Stream(background, capital, waste.MaxTokens(60), waste.Logprobs())
	seen := map[waste.Channel]string{}
	for stream.Next() {
		seen[stream.Piece().Channel] += stream.Piece().Text
	}
	check(t, stream.Err())
	result := stream.Result()
	if result.Thinking == "" || seen[waste.ChannelThinking] != result.Thinking ||
		seen[waste.ChannelResponse] != rome || result.Text != rome {
		t.Fatalf("%q, %+v", seen, result)
	}
	if len(result.Logprobs) != len(result.Tokens) || result.Logprobs[0] >= 0 {
		t.Fatalf("%v", result.Logprobs)
	}
}

func TestErrorTexts(t *testing.T) {
	_, err := waste.Open("no such folder")
	var failure *waste.Error
	if !errors.As(err, &failure) || failure.Status != waste.ErrIO ||
		err.Error() != "waste: "+failure.Message || errors.Is(err, waste.ErrFormat) {
		t.Fatalf("%#v", err)
	}
	if waste.ErrRAMBudget.String() != "RAM_BUDGET" || waste.Status(-99).String() != "status -99" {
		t.Fatal("statuses have other names")
	}
	if waste.FinishLength.String() != "length" || waste.FinishReason(9).String() == "" {
		t.Fatal("finish reasons have other names")
	}
	if (&waste.Error{Status: waste.ErrBusy}).Error() != "waste: BUSY" {
		t.Fatal("an error without a message has no text")
	}
}
