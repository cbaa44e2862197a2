// SPDX-License-Identifier: Apache-2.0
//go:build cgo

// The seam to the generated layer: everything above speaks Go, everything below C. Here structs are
// copied field by field, statuses become errors, and buffers that Go owns are filled by C, which
// keeps none of them. native_nocgo.go has the same functions for programs without cgo.

package waste

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/libwaste/waste/bindings/go/internal/cwaste"
)

var checkLibrary struct {
	once sync.Once
	err  error
}

// load checks, once, that the library found at run time has the structs of the header that this
// package was compiled with.
func load() error {
	checkLibrary.once.Do(func() {
		if have := int(cwaste.Waste_abi_version()); have != cwaste.WASTE_ABI_VERSION {
			checkLibrary.err = fmt.Errorf("%w: its ABI number is %d, and %d is needed; check which "+
				"libwaste is found first", ErrABI, have, cwaste.WASTE_ABI_VERSION)
			return
		}
		const most = 64
		var have, want [most]int32
		haveCount := cwaste.Waste_abi_sizes(have[:])
		wantCount := cwaste.Waste_wrapper_sizes(want[:])
		if haveCount != wantCount || have != want {
			checkLibrary.err = fmt.Errorf("%w: its structs have other sizes; check which libwaste "+
				"is found first", ErrABI)
		}
	})
	return checkLibrary.err
}

// A waste_error as the generated layer copies it out: where its fields are.
const (
	errorBytes     = 520
	errorCodeAt    = 4
	errorNeededAt  = 8
	errorMessageAt = 16
)

type errorImage []byte

func newErrorImage() errorImage { return make(errorImage, errorBytes) }

// failure is the error of a call that returned status, or nil if it is none.
func (e errorImage) failure(status int64) error {
	if status >= 0 {
		return nil
	}
	message := string(e[errorMessageAt:])
	if end := strings.IndexByte(message, 0); end >= 0 {
		message = message[:end]
	}
	return &Error{
		Status:  Status(status),
		Message: message,
		Needed:  int64(binary.LittleEndian.Uint64(e[errorNeededAt:])),
	}
}

// handleOf is for calls that hand out an object.
func handleOf(f func(out []uintptr, e []byte) int32) (uintptr, error) {
	var out [1]uintptr
	e := newErrorImage()
	status := f(out[:], e)
	return out[0], e.failure(int64(status))
}

func statusOf(f func(e []byte) int32) error {
	e := newErrorImage()
	return e.failure(int64(f(e)))
}

// bytesOf is never nil, which C would see as NULL, for an empty text.
func bytesOf(text string) []byte {
	return append(make([]byte, 0, len(text)+1), text...)
}

// int32Of keeps a number that is too large too large, for the library to refuse it.
func int32Of(value int) int32 {
	if value > math.MaxInt32 {
		return math.MaxInt32
	}
	if value < math.MinInt32 {
		return math.MinInt32
	}
	return int32(value)
}

func int32OfBool(value bool) int32 {
	if value {
		return 1
	}
	return 0
}

func nativeVersion() string {
	buffer := make([]byte, 64)
	size := cwaste.Waste_version(buffer)
	if size < 0 || size > int64(len(buffer)) {
		return ""
	}
	return string(buffer[:size])
}

func nativeFree(object uintptr)   { cwaste.Waste_free(object) }
func nativeCancel(object uintptr) { cwaste.Waste_cancel(object) }

func openOptions(c openConfig) cwaste.Waste_open_options {
	o := cwaste.NewWaste_open_options()
	o.SetThreads(int32Of(c.threads))
	o.SetBudget_bytes(c.budget)
	o.SetContext(int64(c.context))
	o.SetIo(int32(c.io))
	o.SetVerify(int32OfBool(c.verify))
	if c.noLookahead {
		o.SetLookahead(2)
	}
	o.SetArithmetic(int32(c.arithmetic))
	o.SetIsa(int32(c.isa))
	o.SetRead_lanes(int32Of(c.readLanes))
	if c.cpuList != "" && o.Set_cpu_list(bytesOf(c.cpuList)) != 0 {
		panic("waste: no memory for the list of CPUs") // as Go itself ends without memory
	}
	return o
}

func nativePlan(path string, c openConfig) (MemoryPlan, error) {
	options, out := openOptions(c), cwaste.NewWaste_memory_plan()
	defer cwaste.DeleteWaste_open_options(options)
	defer cwaste.DeleteWaste_memory_plan(out)
	if err := statusOf(func(e []byte) int32 {
		return cwaste.Waste_plan(bytesOf(path), options, out, e)
	}); err != nil {
		return MemoryPlan{}, err
	}
	return MemoryPlan{
		Fits:        out.GetFits() != 0,
		Floor:       out.GetFloor_bytes(),
		Recommended: out.GetRecommended_bytes(),
		Trunk:       out.GetTrunk_bytes(),
		State:       out.GetState_bytes(),
		Scratch:     out.GetScratch_bytes(),
		Staging:     out.GetStaging_bytes(),
		Cache:       out.GetCache_bytes(),
		Usable:      out.GetUsable_bytes(),
		Budget:      out.GetBudget_bytes(),
		Reserved:    out.GetReserved_bytes(),
	}, nil
}

func nativeOpenJob(path string, c openConfig) (uintptr, error) {
	options := openOptions(c)
	defer cwaste.DeleteWaste_open_options(options)
	return handleOf(func(out []uintptr, e []byte) int32 {
		return cwaste.Waste_open_job(bytesOf(path), options, out, e)
	})
}

func nativeVerifyJob(path string) (uintptr, error) {
	return handleOf(func(out []uintptr, e []byte) int32 {
		return cwaste.Waste_verify(bytesOf(path), out, e)
	})
}

func nativeConvertJob(source, target string, c convertConfig) (uintptr, error) {
	o := cwaste.NewWaste_convert_options()
	defer cwaste.DeleteWaste_convert_options(o)
	o.SetThreads(int32Of(c.threads))
	o.SetStages(int32Of(c.stages))
	o.SetIndex_bits(int32Of(c.indexBits))
	o.SetTrunk_bits(int32Of(c.trunkBits))
	o.SetExpert_beam(int32Of(c.expertBeam))
	o.SetQuantise_from(c.quantiseFrom)
	return handleOf(func(out []uintptr, e []byte) int32 {
		return cwaste.Waste_convert(bytesOf(source), bytesOf(target), o, out, e)
	})
}

func nativeSynthesizeJob(shape, target string, c synthesisConfig) (uintptr, error) {
	o := cwaste.NewWaste_synthesis_options()
	defer cwaste.DeleteWaste_synthesis_options(o)
	o.SetLayers(int32Of(c.layers))
	o.SetExperts(int32Of(c.experts))
	o.SetSeed(c.seed)
	return handleOf(func(out []uintptr, e []byte) int32 {
		return cwaste.Waste_synthesize(bytesOf(shape), bytesOf(target), o, out, e)
	})
}

func nativeJobModel(job uintptr) (uintptr, error) {
	return handleOf(func(out []uintptr, e []byte) int32 {
		return cwaste.Waste_job_model(job, out, e)
	})
}

func nativeJobProgress(job uintptr) (Progress, error) {
	out := cwaste.NewWaste_progress()
	defer cwaste.DeleteWaste_progress(out)
	err := statusOf(func(e []byte) int32 { return cwaste.Waste_job_progress(job, out, e) })
	return Progress{Done: out.GetDone(), Total: out.GetTotal()}, err
}

func nativeJobWait(job uintptr, millis int64) (running bool, err error) {
	e := newErrorImage()
	status := cwaste.Waste_job_wait(job, millis, e)
	return int(status) == cwaste.WASTE_RUNNING, e.failure(int64(status))
}

// nativeLogNext is the next line of a model or a job, or "" if there is none.
func nativeLogNext(object uintptr) (string, error) {
	buffer := make([]byte, 4096)
	e := newErrorImage()
	size := cwaste.Waste_log_next(object, buffer, e)
	if size < 0 {
		return "", e.failure(size)
	}
	return string(buffer[:size]), nil
}
