// SPDX-License-Identifier: Apache-2.0
//
// Long work (opening, verifying, converting, synthesizing) with progress and cancelling, and what
// needs no object.

package waste

import "context"

// How often progress is told, and how late the end of a job may be noticed at most.
const jobPollMillis = 20

// Version is that of the native library, "major.minor.patch", or "" without one.
func Version() string {
	if load() != nil {
		return ""
	}
	return nativeVersion()
}

// Plan tells what opening a model would cost, without loading anything. A budget below the floor
// is no error here: MemoryPlan.Fits says so. Errors: ErrIO, ErrFormat, ErrCorrupt,
// ErrUnsupported, ErrVersion, ErrArgument.
func Plan(path string, options ...OpenOption) (MemoryPlan, error) {
	if err := load(); err != nil {
		return MemoryPlan{}, err
	}
	return nativePlan(path, openConfigOf(options))
}

// Verify reads every byte of a container and checks all that can be checked. When ctx is done it
// ends with ErrCancelled.
func Verify(ctx context.Context, path string, options ...VerifyOption) error {
	if err := load(); err != nil {
		return err
	}
	var config jobConfig
	for _, option := range options {
		if option != nil {
			option.verifyOption(&config)
		}
	}
	return runJob(ctx, config, func() (uintptr, error) { return nativeVerifyJob(path) }, nil)
}

// Convert makes a container of a Hugging Face folder. The target must not exist, and appears only
// when it is complete. When ctx is done it ends with ErrCancelled.
func Convert(ctx context.Context, source, target string, options ...ConvertOption) error {
	if err := load(); err != nil {
		return err
	}
	var config convertConfig
	for _, option := range options {
		if option != nil {
			option.convertOption(&config)
		}
	}
	return runJob(ctx, config.jobConfig, func() (uintptr, error) {
		return nativeConvertJob(source, target, config)
	}, nil)
}

// Synthesize writes a container of random weights in the true shape of a model, whole or cut down:
// "kimi-linear-48b", "k3" or "mini". Its answers mean nothing; it is for measuring without
// anybody's weights. The target must not exist, and appears only when it is complete. When ctx is
// done it ends with ErrCancelled.
// Errors: ErrArgument (an unknown shape, a target that exists), ErrIO, ErrCancelled.
func Synthesize(ctx context.Context, shape, target string, options ...SynthesisOption) error {
	if err := load(); err != nil {
		return err
	}
	var config synthesisConfig
	for _, option := range options {
		if option != nil {
			option.synthesisOption(&config)
		}
	}
	return runJob(ctx, config.jobConfig, func() (uintptr, error) {
		return nativeSynthesizeJob(shape, target, config)
	}, nil)
}

func openConfigOf(options []OpenOption) openConfig {
	var config openConfig
	for _, option := range options {
		if option != nil {
			option.openOption(&config)
		}
	}
	return config
}

// runJob waits for the job that start makes, and then gives it to finish.
func runJob(ctx context.Context, config jobConfig, start func() (uintptr, error),
	finish func(job uintptr) error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if err := ctx.Err(); err != nil {
		return &Error{Status: ErrCancelled, Message: "cancelled before it began", cause: err}
	}
	native, err := start()
	if err != nil {
		return err
	}
	job, err := newHandle(native, nil)
	if err != nil {
		return err
	}
	defer job.close()
	stop := job.cancelWith(ctx)
	defer stop()
	err = job.call(nil, func(native uintptr) error {
		for {
			running, err := nativeJobWait(native, jobPollMillis)
			if reported := report(native, config); err == nil {
				err = reported
			}
			if running && err == nil {
				continue
			}
			if err == nil && finish != nil {
				err = finish(native)
			}
			return err
		}
	})
	return because(err, ctx.Err())
}

// report tells what there is to tell.
func report(job uintptr, config jobConfig) error {
	if config.log != nil {
		lines, err := logLines(job)
		if err != nil {
			return err
		}
		for _, line := range lines {
			config.log(line)
		}
	}
	if config.progress == nil {
		return nil
	}
	progress, err := nativeJobProgress(job)
	if err == nil {
		config.progress(progress)
	}
	return err
}

// logLines takes the lines out that a model or a job has to say.
func logLines(object uintptr) ([]string, error) {
	var lines []string
	for {
		line, err := nativeLogNext(object)
		if err != nil || line == "" {
			return lines, err
		}
		lines = append(lines, line)
	}
}
