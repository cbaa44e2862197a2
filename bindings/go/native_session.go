// SPDX-License-Identifier: Apache-2.0
//go:build cgo

// The seam to the generated layer, continued: models, sessions and generations.

package waste

import (
	"time"

	"github.com/libwaste/waste/bindings/go/internal/cwaste"
)

func nativeModelInfo(model uintptr) (Info, error) {
	out := cwaste.NewWaste_info()
	defer cwaste.DeleteWaste_info(out)
	if err := statusOf(func(e []byte) int32 {
		return cwaste.Waste_model_info(model, out, e)
	}); err != nil {
		return Info{}, err
	}
	name := make([]byte, 256)
	e := newErrorImage()
	size := cwaste.Waste_model_name(model, name, e)
	if size < 0 {
		return Info{}, e.failure(size)
	}
	if size < int64(len(name)) {
		name = name[:size]
	}
	return Info{
		Name:            string(name),
		VocabSize:       int(out.GetVocab_size()),
		LayerCount:      int(out.GetLayer_count()),
		HiddenSize:      int(out.GetHidden_size()),
		ExpertCount:     int(out.GetExpert_count()),
		ExpertsPerToken: int(out.GetExperts_per_token()),
		Context:         int(out.GetContext()),
		ExpertBytes:     out.GetExpert_bytes(),
		ContainerBytes:  out.GetContainer_bytes(),
		BudgetBytes:     out.GetBudget_bytes(),
		CacheSlots:      out.GetCache_slots(),
		Threads:         int(out.GetThreads()),
		ISA:             ISA(out.GetIsa()),
		DirectIO:        out.GetDirect_io() != 0,
		Thinking:        out.GetThinking() != 0,
		EOSToken:        out.GetEos_token(),
		HasChat:         out.GetHas_chat() != 0,
		TokenTrunkBytes: out.GetToken_trunk_bytes(),
		TokenFlops:      out.GetToken_flops(),
		ReadLanes:       int(out.GetRead_lanes()),
	}, nil
}

func micros(count int64) time.Duration { return time.Duration(count) * time.Microsecond }

func statsOf(f func(out cwaste.Waste_stats, e []byte) int32) (Stats, error) {
	out := cwaste.NewWaste_stats()
	defer cwaste.DeleteWaste_stats(out)
	if err := statusOf(func(e []byte) int32 { return f(out, e) }); err != nil {
		return Stats{}, err
	}
	return Stats{
		FinishReason:    FinishReason(out.GetFinish_reason()),
		Position:        int(out.GetPosition()),
		Context:         int(out.GetContext()),
		PromptTokens:    out.GetPrompt_tokens(),
		GeneratedTokens: out.GetGenerated_tokens(),
		Prefill:         micros(out.GetPrefill_us()),
		Decode:          micros(out.GetDecode_us()),
		ExpertsHit:      out.GetExperts_hit(),
		ExpertsMissed:   out.GetExperts_missed(),
		BytesRead:       out.GetBytes_read(),
		ReadTime:        micros(out.GetRead_us()),
		MemoryBytes:     out.GetMemory_bytes(),
		PeakRSSBytes:    out.GetPeak_rss_bytes(),

		ExpertsForeseen:  out.GetExperts_foreseen(),
		SpeculativeReads: out.GetSpeculative_reads(),
		SpeculativeBytes: out.GetSpeculative_bytes(),
		ReadStalls:       out.GetRead_stalls(),
	}, nil
}

func nativeModelStats(model uintptr) (Stats, error) {
	return statsOf(func(out cwaste.Waste_stats, e []byte) int32 {
		return cwaste.Waste_model_stats(model, out, e)
	})
}

func nativeSessionStats(session uintptr) (Stats, error) {
	return statsOf(func(out cwaste.Waste_stats, e []byte) int32 {
		return cwaste.Waste_session_stats(session, out, e)
	})
}

func nativeGenerationStats(generation uintptr) (Stats, error) {
	return statsOf(func(out cwaste.Waste_stats, e []byte) int32 {
		return cwaste.Waste_generation_stats(generation, out, e)
	})
}

// tokensOf is for calls that fill an array of tokens and return how many there are: again if
// guess was too few.
func tokensOf(guess int, f func(tokens []int32, e []byte) int64) ([]int32, error) {
	for {
		tokens := make([]int32, guess)
		e := newErrorImage()
		count := f(tokens, e)
		if count < 0 {
			return nil, e.failure(count)
		}
		if count <= int64(guess) {
			return tokens[:count], nil
		}
		guess = int(count)
	}
}

func nativeTokenize(model uintptr, text string, markup bool) ([]int32, error) {
	input, tokenize := bytesOf(text), cwaste.Waste_tokenize
	if markup {
		tokenize = cwaste.Waste_tokenize_markup
	}
	return tokensOf(len(text)+1, func(tokens []int32, e []byte) int64 {
		return tokenize(model, input, tokens, e)
	})
}

func nativeDetokenize(model uintptr, tokens []int32) ([]byte, error) {
	for guess := 16 * (len(tokens) + 1); ; {
		buffer := make([]byte, guess)
		e := newErrorImage()
		size := cwaste.Waste_detokenize(model, tokens, buffer, e)
		if size < 0 {
			return nil, e.failure(size)
		}
		if size <= int64(guess) {
			return buffer[:size], nil
		}
		guess = int(size)
	}
}

func nativeSession(model uintptr, c sessionConfig) (uintptr, error) {
	o := cwaste.NewWaste_session_options()
	defer cwaste.DeleteWaste_session_options(o)
	o.SetThinking(int32OfBool(c.thinking))
	o.SetContext(int64(c.context))
	session, err := handleOf(func(out []uintptr, e []byte) int32 {
		return cwaste.Waste_session_create(model, o, out, e)
	})
	if err != nil || c.system == nil {
		return session, err
	}
	if err := nativeAddMessage(session, RoleSystem, *c.system); err != nil {
		nativeFree(session)
		return 0, err
	}
	return session, nil
}

func nativeAddMessage(session uintptr, role Role, text string) error {
	return statusOf(func(e []byte) int32 {
		return cwaste.Waste_session_add_message(session, int32(role), bytesOf(text), e)
	})
}

func nativeEval(session uintptr, tokens []int32, logits []float32) error {
	e := newErrorImage()
	return e.failure(cwaste.Waste_eval(session, tokens, logits, e))
}

func nativeSessionTokens(session uintptr) ([]int32, error) {
	return tokensOf(256, func(tokens []int32, e []byte) int64 {
		return cwaste.Waste_session_tokens(session, tokens, e)
	})
}

func nativeReset(session uintptr) error {
	return statusOf(func(e []byte) int32 { return cwaste.Waste_session_reset(session, e) })
}

func nativeRewind(session uintptr, position int) error {
	return statusOf(func(e []byte) int32 {
		return cwaste.Waste_session_rewind(session, int64(position), e)
	})
}

func nativeFork(session uintptr) (uintptr, error) {
	return handleOf(func(out []uintptr, e []byte) int32 {
		return cwaste.Waste_session_fork(session, out, e)
	})
}

func nativeSave(session uintptr, path string) error {
	return statusOf(func(e []byte) int32 {
		return cwaste.Waste_session_save(session, bytesOf(path), e)
	})
}

func nativeLoad(session uintptr, path string) error {
	return statusOf(func(e []byte) int32 {
		return cwaste.Waste_session_load(session, bytesOf(path), e)
	})
}

func generationOptions(c generateConfig) cwaste.Waste_generation_options {
	o := cwaste.NewWaste_generation_options()
	o.SetMax_tokens(int32Of(c.maxTokens))
	o.SetTemperature(c.temperature)
	o.SetTop_p(c.topP)
	o.SetMin_p(c.minP)
	o.SetRepeat_penalty(c.repeatPenalty)
	o.SetPresence_penalty(c.presencePenalty)
	o.SetFrequency_penalty(c.frequencyPenalty)
	o.SetSeed(c.seed)
	o.SetTop_k(int32Of(c.topK))
	o.SetPenalty_window(int32Of(c.penaltyWindow))
	o.SetLogprobs(int32OfBool(c.logprobs))
	o.SetRaw(int32OfBool(c.raw))
	o.SetMarkup_out(int32OfBool(c.markupOut))
	return o
}

// nativeGenerate starts an answer; prompt is nil to go on without one.
func nativeGenerate(session uintptr, prompt *string, c generateConfig) (uintptr, error) {
	options := generationOptions(c)
	defer cwaste.DeleteWaste_generation_options(options)
	var text []byte
	if prompt != nil {
		text = bytesOf(*prompt)
	}
	generation, err := handleOf(func(out []uintptr, e []byte) int32 {
		return cwaste.Waste_generate(session, text, options, out, e)
	})
	if err != nil {
		return 0, err
	}
	if err := addEnds(generation, c); err != nil {
		nativeFree(generation)
		return 0, err
	}
	return generation, nil
}

// addEnds adds what ends an answer, and biases.
func addEnds(generation uintptr, c generateConfig) error {
	for _, stop := range c.stops {
		if err := statusOf(func(e []byte) int32 {
			return cwaste.Waste_generation_add_stop(generation, bytesOf(stop), e)
		}); err != nil {
			return err
		}
	}
	for _, token := range c.stopTokens {
		if err := statusOf(func(e []byte) int32 {
			return cwaste.Waste_generation_add_stop_token(generation, token, e)
		}); err != nil {
			return err
		}
	}
	for _, bias := range c.biases {
		if err := statusOf(func(e []byte) int32 {
			return cwaste.Waste_generation_add_bias(generation, bias.token, bias.amount, e)
		}); err != nil {
			return err
		}
	}
	return nil
}

// nativeNext pulls one piece, of which buffer receives the text. The end is a piece without text;
// the reason is told then, and with an error if that is a cancel.
func nativeNext(generation uintptr, buffer []byte) (Piece, FinishReason, error) {
	info := cwaste.NewWaste_token()
	defer cwaste.DeleteWaste_token(info)
	e := newErrorImage()
	size := cwaste.Waste_next(generation, buffer, info, e)
	if size <= 0 {
		return Piece{}, FinishReason(info.GetFinish_reason()), e.failure(size)
	}
	return Piece{
		Text:       string(buffer[:size]),
		Channel:    Channel(info.GetChannel()),
		Token:      info.GetId(),
		FirstIndex: int(info.GetFirst_index()),
		Count:      int(info.GetCount()),
		Logprob:    info.GetLogprob(),
		Position:   int(info.GetPosition()),
	}, FinishNone, nil
}

func nativeGenerationTokens(generation uintptr) ([]int32, []float64, error) {
	var logprobs []float64
	tokens, err := tokensOf(256, func(tokens []int32, e []byte) int64 {
		logprobs = make([]float64, len(tokens))
		return cwaste.Waste_generation_tokens(generation, tokens, logprobs, e)
	})
	return tokens, logprobs[:len(tokens)], err
}
