// SPDX-License-Identifier: Apache-2.0
//go:build !cgo

// What native.go is for programs without cgo: every constructor says that, so nothing else here is
// ever reached.

package waste

func load() error { return ErrNoCgo }

func nativeVersion() string { return "" }
func nativeFree(uintptr)    {}
func nativeCancel(uintptr)  {}

func nativePlan(string, openConfig) (MemoryPlan, error) { return MemoryPlan{}, ErrNoCgo }
func nativeOpenJob(string, openConfig) (uintptr, error) { return 0, ErrNoCgo }
func nativeVerifyJob(string) (uintptr, error)           { return 0, ErrNoCgo }
func nativeConvertJob(string, string, convertConfig) (uintptr, error) {
	return 0, ErrNoCgo
}

func nativeSynthesizeJob(string, string, synthesisConfig) (uintptr, error) {
	return 0, ErrNoCgo
}

func nativeJobModel(uintptr) (uintptr, error)     { return 0, ErrNoCgo }
func nativeJobProgress(uintptr) (Progress, error) { return Progress{}, ErrNoCgo }
func nativeJobWait(uintptr, int64) (bool, error)  { return false, ErrNoCgo }
func nativeLogNext(uintptr) (string, error)       { return "", ErrNoCgo }

func nativeModelInfo(uintptr) (Info, error)                 { return Info{}, ErrNoCgo }
func nativeModelStats(uintptr) (Stats, error)               { return Stats{}, ErrNoCgo }
func nativeTokenize(uintptr, string, bool) ([]int32, error) { return nil, ErrNoCgo }
func nativeDetokenize(uintptr, []int32) ([]byte, error)     { return nil, ErrNoCgo }
func nativeSession(uintptr, sessionConfig) (uintptr, error) { return 0, ErrNoCgo }

func nativeSessionStats(uintptr) (Stats, error)    { return Stats{}, ErrNoCgo }
func nativeAddMessage(uintptr, Role, string) error { return ErrNoCgo }
func nativeEval(uintptr, []int32, []float32) error { return ErrNoCgo }
func nativeSessionTokens(uintptr) ([]int32, error) { return nil, ErrNoCgo }
func nativeReset(uintptr) error                    { return ErrNoCgo }
func nativeRewind(uintptr, int) error              { return ErrNoCgo }
func nativeFork(uintptr) (uintptr, error)          { return 0, ErrNoCgo }
func nativeSave(uintptr, string) error             { return ErrNoCgo }
func nativeLoad(uintptr, string) error             { return ErrNoCgo }

func nativeGenerate(uintptr, *string, generateConfig) (uintptr, error) {
	return 0, ErrNoCgo
}

func nativeGenerationStats(uintptr) (Stats, error) { return Stats{}, ErrNoCgo }
func nativeNext(uintptr, []byte) (Piece, FinishReason, error) {
	return Piece{}, FinishNone, ErrNoCgo
}

func nativeGenerationTokens(uintptr) ([]int32, []float64, error) { return nil, nil, ErrNoCgo }
