// SPDX-License-Identifier: Apache-2.0
//
// Memory, threads and goroutines after many objects; and how fast pieces come.

package waste_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	waste "github.com/libwaste/waste/bindings/go"
)

const mebibyte = 1 << 10 // of /proc's KiB

// settledRSS is the resident memory after the collector has run, in KiB.
func settledRSS(t *testing.T) int64 {
	t.Helper()
	for i := 0; i < 3; i++ {
		runtime.GC()
	}
	return statusFile(t, "VmRSS")
}

func TestOpenClose200Times(t *testing.T) {
	round := func() {
		model, err := waste.Open(miniModel, waste.WithContext(512))
		check(t, err)
		session, err := model.NewSession()
		check(t, err)
		_, err = session.Ask(background, capital, waste.MaxTokens(1))
		check(t, err)
		check(t, model.Close())
	}
	for i := 0; i < 20; i++ {
		round()
	}
	before := settledRSS(t)
	for i := 0; i < 180; i++ {
		round()
	}
	after := settledRSS(t)
	t.Logf("%d KiB after 20 rounds, %d KiB after 200", before, after)
	if after > before+24*mebibyte {
		t.Fatalf("resident memory grew from %d to %d KiB", before, after)
	}
}

// WASTE_TEST_STRESS says how many; each is a new session with a short answer.
func TestStressShortGenerations(t *testing.T) {
	count := 500
	if text := os.Getenv("WASTE_TEST_STRESS"); text != "" {
		var err error
		count, err = strconv.Atoi(text)
		check(t, err)
	}
	model := openMini(t)
	round := func(n int) {
		for i := 0; i < n; i++ {
			ctx, cancel := context.WithCancel(background)
			session, err := model.NewSession()
			check(t, err)
			answer, err := session.Ask(ctx, "The", waste.Raw(), waste.MaxTokens(2))
			check(t, err)
			if len(answer.Tokens) != 2 {
				t.Fatalf("%+v", answer)
			}
			check(t, session.Close())
			cancel()
		}
	}
	round(count / 5)
	before := settledRSS(t)
	round(count - count/5)
	after := settledRSS(t)
	t.Logf("stress: %s: %d generations, %d KiB resident after a fifth of them and %d KiB after all",
		runtime.Version(), count, before, after)
	if after > before+16*mebibyte {
		t.Fatalf("resident memory grew from %d to %d KiB", before, after)
	}
}

func TestNoGoroutineOrThreadStays(t *testing.T) {
	path := script(t, endlessModel)
	round := func() {
		var group sync.WaitGroup
		for worker := 0; worker < 4; worker++ {
			group.Add(1)
			go func() {
				defer group.Done()
				model, err := waste.Open(path)
				if err != nil {
					t.Error(err)
					return
				}
				defer model.Close()
				ctx, cancel := context.WithCancel(background)
				stream := model.NewChat().Stream(ctx, "x")
				for i := 0; i < 20 && stream.Next(); i++ {
				}
				cancel()
				if _, err := drain(stream); err == nil {
					t.Error("a cancelled stream ended well")
				}
			}()
		}
		group.Wait()
	}
	for i := 0; i < 5; i++ {
		round()
	}
	goroutines, threads := runtime.NumGoroutine(), statusFile(t, "Threads")
	for i := 0; i < 25; i++ {
		round()
	}
	eventually(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= goroutines })
	// Go keeps threads that it needed once, so a few more are no leak; one a round would be.
	if now := statusFile(t, "Threads"); now > threads+8 {
		t.Fatalf("%d threads became %d", threads, now)
	}
}

func BenchmarkStream(b *testing.B) {
	model, err := waste.Open(miniModel, waste.WithContext(512))
	if err != nil {
		b.Fatal(err)
	}
	defer model.Close()
	session := model.NewChat()
	defer session.Close()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	tokens, begin := 0, time.Now()
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		answer, err := session.Ask(ctx, story)
		if err != nil {
			b.Fatal(err)
		}
		tokens += len(answer.Tokens)
		if err := session.Reset(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(tokens)/time.Since(begin).Seconds(), "tokens/s")
}

// What this layer costs a piece: a scripted model computes nothing.
func BenchmarkNext(b *testing.B) {
	model, err := waste.Open("test:../conformance/scripts/endless.json", waste.WithContext(4096))
	if err != nil {
		b.Fatal(err)
	}
	defer model.Close()
	session := model.NewChat()
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	b.ReportAllocs()
	b.ResetTimer()
	stream := session.Stream(ctx, "x")
	for i := 0; i < b.N; i++ {
		if !stream.Next() {
			if err := session.Reset(); err != nil {
				b.Fatal(err)
			}
			stream = session.Stream(ctx, "x")
		}
	}
	stream.Close()
}
