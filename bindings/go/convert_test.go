// SPDX-License-Identifier: Apache-2.0
//
// Converting, synthesizing and verifying: jobs with progress, log lines and cancelling. The
// checkpoint is a small random one, as large as a cancel in the middle of it needs.

package waste_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	waste "github.com/libwaste/waste/bindings/go"
)

const (
	hidden = 64
	inner  = 64
	vocab  = 300
)

// checkpoint writes one of a Kimi-Linear of two layers in the layout of Hugging Face.
func checkpoint(t *testing.T, experts int) (folder string) {
	t.Helper()
	folder = t.TempDir()
	config := map[string]any{
		"architectures": []string{"KimiLinearForCausalLM"}, "model_type": "kimi_linear",
		"vocab_size": vocab, "hidden_size": hidden, "num_hidden_layers": 2,
		"num_attention_heads": 2, "intermediate_size": 48, "first_k_dense_replace": 1,
		"kv_lora_rank": 16, "q_lora_rank": nil, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4,
		"v_head_dim": 8, "mla_use_nope": true, "num_experts_per_token": 2,
		"moe_intermediate_size": inner, "num_shared_experts": 1,
		"moe_router_activation_func": "sigmoid", "routed_scaling_factor": 1.5,
		"rms_norm_eps": 1e-5, "eos_token_id": 260, "num_experts": experts,
		"moe_renormalize": true, "hidden_act": "silu",
		"linear_attn_config": map[string]any{"num_heads": 2, "head_dim": 8,
			"short_conv_kernel_size": 4, "kda_layers": []int{1}, "full_attn_layers": []int{2}},
	}
	writeJSON(t, filepath.Join(folder, "config.json"), config)
	writeJSON(t, filepath.Join(folder, "tokenizer_config.json"), map[string]any{
		"added_tokens_decoder": map[string]any{
			"260": map[string]any{"content": "[EOS]", "special": true}}})
	var ranks strings.Builder
	for i := 0; i < 256; i++ {
		fmt.Fprintf(&ranks, "%s %d\n", base64.StdEncoding.EncodeToString([]byte{byte(i)}), i)
	}
	check(t, os.WriteFile(filepath.Join(folder, "tiktoken.model"), []byte(ranks.String()), 0o600))
	check(t, os.WriteFile(filepath.Join(folder, "model.safetensors"), tensors(t, experts), 0o600))
	return folder
}

func writeJSON(t *testing.T, path string, value any) {
	t.Helper()
	text, err := json.Marshal(value)
	check(t, err)
	check(t, os.WriteFile(path, text, 0o600))
}

// tensors is the safetensors file.
func tensors(t *testing.T, experts int) []byte {
	t.Helper()
	shapes := map[string][]int{
		"model.embed_tokens.weight":                                    {vocab, hidden},
		"model.norm.weight":                                            {hidden},
		"lm_head.weight":                                               {vocab, hidden},
		"model.layers.0.self_attn.q_conv1d.weight":                     {16, 1, 4},
		"model.layers.0.mlp.gate_proj.weight":                          {48, hidden},
		"model.layers.1.self_attn.o_proj.weight":                       {hidden, 16},
		"model.layers.1.block_sparse_moe.gate.weight":                  {experts, hidden},
		"model.layers.1.block_sparse_moe.shared_experts.w3.weight":     {inner, hidden},
		"model.layers.1.block_sparse_moe.gate.e_score_correction_bias": {experts},
	}
	for e := 0; e < experts; e++ {
		name := fmt.Sprintf("model.layers.1.block_sparse_moe.experts.%d.", e)
		shapes[name+"w1.weight"] = []int{inner, hidden}
		shapes[name+"w3.weight"] = []int{inner, hidden}
		shapes[name+"w2.weight"] = []int{hidden, inner}
	}
	random, header, data := rand.New(rand.NewSource(1)), map[string]any{}, []byte(nil)
	for name, shape := range shapes {
		begin, count := len(data), 1
		for _, size := range shape {
			count *= size
		}
		for i := 0; i < count; i++ {
			bits := math.Float32bits(float32(random.NormFloat64() / 10))
			data = binary.LittleEndian.AppendUint32(data, bits)
		}
		header[name] = map[string]any{"dtype": "F32", "shape": shape,
			"data_offsets": []int{begin, len(data)}}
	}
	text, err := json.Marshal(header)
	check(t, err)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(file, text...), data...)
}

func TestConvertAndVerify(t *testing.T) {
	source, target := checkpoint(t, 4), filepath.Join(t.TempDir(), "made.waste")
	var last waste.Progress
	var lines []string
	log := waste.WithLog(func(line string) { lines = append(lines, line) })
	progress := waste.WithProgress(func(p waste.Progress) { last = p })
	check(t, waste.Convert(background, source, target, waste.WithThreads(1), waste.WithStages(2),
		waste.WithTrunkBits(8), waste.WithExpertBeam(1), waste.WithQuantiseFrom(100), progress, log))
	if last.Total == 0 || last.Done != last.Total {
		t.Fatalf("the last progress is %+v", last)
	}
	if said := strings.Join(lines, "\n"); !strings.Contains(said, "experts: relative error") {
		t.Fatalf("%q", said)
	}
	last, lines = waste.Progress{}, nil
	check(t, waste.Verify(background, miniModel, progress, log))
	if last.Done != last.Total || last.Total < 1<<20 {
		t.Fatalf("the last progress is %+v", last)
	}
	if said := strings.Join(lines, "\n"); !strings.Contains(said, "no checksum") {
		t.Fatalf("%q", said)
	}
	model := openMini(t)
	lines, err := model.LogLines()
	check(t, err)
	info, err := model.Info()
	check(t, err)
	if info.DirectIO == (len(lines) > 0) { // what there is to say is that direct reads are refused
		t.Fatalf("%v of %+v", lines, info)
	}

	wantError(t, waste.Convert(background, source, target), waste.ErrArgument)
	wantError(t, waste.Convert(background, source+"/no", target+"2"), waste.ErrIO)
	wantError(t, waste.Convert(background, source, target+"2", waste.WithStages(5)),
		waste.ErrArgument)
	wantError(t, waste.Convert(background, source, target+"2", waste.WithIndexBits(5)),
		waste.ErrArgument)
	wantError(t, waste.Verify(background, source+"/no"), waste.ErrIO)
}

func TestConvertAndVerifyCancelled(t *testing.T) {
	source, target := checkpoint(t, 256), filepath.Join(t.TempDir(), "made.waste")
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	within(t, 5*cancelBound, "a cancelled conversion", func() {
		err := waste.Convert(ctx, source, target, waste.WithExpertBeam(16), waste.WithThreads(1),
			waste.WithProgress(func(p waste.Progress) {
				if p.Total > 0 {
					cancel()
				}
			}))
		wantError(t, err, waste.ErrCancelled, context.Canceled)
	})
	if _, err := os.Stat(target); err == nil {
		t.Fatal("a cancelled conversion left a container")
	}
	wantError(t, waste.Verify(ctx, miniModel), waste.ErrCancelled, context.Canceled)
}

// rawTokens are the first tokens of an answer of the model at path.
func rawTokens(t *testing.T, path string) []int32 {
	t.Helper()
	answer, err := newSession(t, open(t, path)).Ask(background, "The", waste.Raw(),
		waste.MaxTokens(4))
	check(t, err)
	return answer.Tokens
}

func TestSynthesize(t *testing.T) {
	folder := t.TempDir()
	made, again := filepath.Join(folder, "made.waste"), filepath.Join(folder, "again.waste")
	var last waste.Progress
	for _, target := range []string{made, again} {
		check(t, waste.Synthesize(background, "mini", target, waste.WithLayers(3),
			waste.WithExperts(8), waste.WithSeed(5),
			waste.WithProgress(func(p waste.Progress) { last = p })))
	}
	if last.Total < 1<<16 || last.Done != last.Total {
		t.Fatalf("the last progress is %+v", last)
	}
	info, err := open(t, made).Info()
	check(t, err)
	if info.LayerCount != 3 || info.ExpertCount != 8 {
		t.Fatalf("%+v", info)
	}
	check(t, waste.Verify(background, made))
	tokens := rawTokens(t, made)
	if len(tokens) == 0 || !reflect.DeepEqual(tokens, rawTokens(t, made)) ||
		!reflect.DeepEqual(tokens, rawTokens(t, again)) {
		t.Fatalf("%v", tokens)
	}

	wantError(t, waste.Synthesize(background, "no such shape", made+"2"), waste.ErrArgument)
	wantError(t, waste.Synthesize(background, "mini", made), waste.ErrArgument)
	wantError(t, waste.Synthesize(background, "mini", made+"2", waste.WithLayers(-1)),
		waste.ErrArgument)
	wantError(t, waste.Synthesize(background, "mini", filepath.Join(folder, "no", "x"), nil),
		waste.ErrIO)
}

// The first tensor of this shape has 377 MB: a cancel does not wait for all of it.
func TestSynthesizeCancelled(t *testing.T) {
	folder := t.TempDir()
	target := filepath.Join(folder, "made.waste")
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	within(t, time.Minute, "a cancelled synthesis", func() {
		err := waste.Synthesize(ctx, "kimi-linear-48b", target, waste.WithLayers(2),
			waste.WithProgress(func(waste.Progress) { cancel() }))
		wantError(t, err, waste.ErrCancelled, context.Canceled)
	})
	left, err := os.ReadDir(folder)
	check(t, err)
	if len(left) > 0 {
		t.Fatalf("a cancelled synthesis left %v", left)
	}
	wantError(t, waste.Synthesize(ctx, "mini", target), waste.ErrCancelled, context.Canceled)
}
