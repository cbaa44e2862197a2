// SPDX-License-Identifier: Apache-2.0
//
// Long work as an object: open, convert, synthesize, verify; and the log lines of models and jobs.

#include <optional>

#include "base/utf8.h"
#include "boundary.h"
#include "convert/convert.h"
#include "convert/synthesize.h"
#include "engine/container_backend.h"
#include "handle.h"
#include "translate.h"

namespace waste {
namespace {

// Starts `work` and hands its handle out.
Status StartJob(waste_job **out, std::shared_ptr<waste_job::Outcome> outcome, Job::Work work) {
  WASTE_ASSIGN(auto job, Job::Start(std::move(work)));
  *out = new waste_job(std::move(job), std::move(outcome));
  return Status();
}

// The log behind a handle that may be a model or a job.
Result<std::optional<std::string>> NextLine(void *object) {
  if (object == nullptr) return Failure(Code::kArgument, "object is NULL");
  auto *handle = static_cast<Object *>(object);
  const Use<Object> use(handle);
  if (handle->kind() == Kind::kModel)
    return static_cast<waste_model *>(handle)->model->log().NextLine();
  if (handle->kind() == Kind::kJob)
    return static_cast<waste_job *>(handle)->job->progress().NextLine();
  return Failure(Code::kArgument, "only models and jobs have a log");
}

}  // namespace
}  // namespace waste

using namespace waste;

extern "C" {

waste_status waste_open_job(const char *path, int64_t path_size, const waste_open_options *options,
                            waste_job **out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_TRY(CheckOut(out));
    WASTE_ASSIGN(const std::string name, Path(path, path_size, "path"));
    WASTE_ASSIGN(const OpenOptions wanted, ToOpenOptions(options));
    auto outcome = std::make_shared<waste_job::Outcome>();
    return StartJob(out, outcome, [=](const std::shared_ptr<Progress> &progress) -> Status {
      WASTE_ASSIGN(auto model, Model::Open(name, wanted, progress));
      const std::lock_guard<std::mutex> lock(outcome->mutex);
      outcome->model = std::move(model);
      return Status();
    });
  });
}

waste_status waste_job_model(waste_job *job, waste_model **out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_ASSIGN(const auto use, UseHandle(job));
    WASTE_TRY(CheckOut(out));
    const std::lock_guard<std::mutex> lock(use->outcome->mutex);
    if (use->outcome->model == nullptr)
      return Failure(Code::kArgument,
                     "this job has no model: it is no open job, has not ended well, or its model "
                     "was taken");
    *out = new waste_model(use->outcome->model);
    use->outcome->model.reset();
    return Status();
  });
}

waste_status waste_convert(const char *source, int64_t source_size, const char *target,
                           int64_t target_size, const waste_convert_options *options,
                           waste_job **out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_TRY(CheckOut(out));
    WASTE_ASSIGN(const std::string from, Path(source, source_size, "source"));
    WASTE_ASSIGN(const std::string to, Path(target, target_size, "target"));
    WASTE_ASSIGN(const ConvertOptions wanted, ToConvertOptions(options));
    return StartJob(out, std::make_shared<waste_job::Outcome>(),
                    [=](const std::shared_ptr<Progress> &progress) {
                      return Convert(from, to, wanted, *progress);
                    });
  });
}

waste_status waste_synthesize(const char *shape, int64_t shape_size, const char *target,
                              int64_t target_size, const waste_synthesis_options *options,
                              waste_job **out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_TRY(CheckOut(out));
    WASTE_ASSIGN(const std::string_view name, Text(shape, shape_size, "shape"));
    WASTE_ASSIGN(const std::string to, Path(target, target_size, "target"));
    WASTE_ASSIGN(const SyntheticModel model, ToSyntheticModel(name, options));
    return StartJob(out, std::make_shared<waste_job::Outcome>(),
                    [=](const std::shared_ptr<Progress> &progress) {
                      return Synthesize(model, to, *progress);
                    });
  });
}

waste_status waste_verify(const char *path, int64_t path_size, waste_job **out,
                          waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_TRY(CheckOut(out));
    WASTE_ASSIGN(const std::string name, Path(path, path_size, "path"));
    return StartJob(
        out, std::make_shared<waste_job::Outcome>(),
        [=](const std::shared_ptr<Progress> &progress) { return VerifyModel(name, *progress); });
  });
}

waste_status waste_job_progress(waste_job *job, waste_progress *out, waste_error *error) {
  return GuardStatus(error, [&]() -> Status {
    WASTE_ASSIGN(const auto use, UseHandle(job));
    WASTE_TRY(CheckStruct(out, "out"));
    waste_progress progress{};
    progress.finished = use->job->finished() ? 1 : 0;
    progress.done = use->job->progress().done();
    progress.total = use->job->progress().total();
    WriteStruct(out, progress);
    return Status();
  });
}

waste_status waste_job_wait(waste_job *job, int64_t timeout_ms, waste_error *error) {
  return GuardStatus(error, [&]() -> Result<int64_t> {
    WASTE_ASSIGN(const auto use, UseHandle(job));
    const std::optional<Status> result = use->job->Wait(timeout_ms);
    if (!result) return int64_t{WASTE_RUNNING};
    WASTE_TRY(*result);
    return int64_t{0};
  });
}

int64_t waste_log_next(void *object, char *buffer, int64_t buffer_size, waste_error *error) {
  return Guard(error, [&]() -> Result<int64_t> {
    WASTE_ASSIGN(const auto out, Array(buffer, buffer_size, "buffer"));
    if (buffer_size < 16)
      return Failure(Code::kArgument, "a buffer of ", buffer_size,
                     " bytes; at least 16 are needed");
    WASTE_ASSIGN(const std::optional<std::string> line, NextLine(object));
    if (!line) return int64_t{0};
    return CopyText(CutUtf8(*line, buffer_size - 1), out);
  });
}

}  // extern "C"
