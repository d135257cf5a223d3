#pragma once
// The load of a server, as its clients ask for it by ORCA.

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>

#include "orca.grpc.pb.h"

// Load counts RPCs: a handler calls Begin, and End once when its RPC is over.
class Load final : public xds::service::orca::v3::OpenRcaService::CallbackService {
 public:
  void Begin() { ++begun_; }
  void End() { ++ended_; }
  long Begun() const { return begun_; }
  long InFlight() const {
    const long ended = ended_;  // first: the other is never below it
    return begun_ - ended;
  }

  using Report = xds::service::orca::v3::OrcaLoadReport;
  using Request = xds::service::orca::v3::OrcaLoadReportRequest;
  grpc::ServerWriteReactor<Report>* StreamCoreMetrics(grpc::CallbackServerContext*, const Request* request) override {
    const double asked = request->report_interval().seconds() + request->report_interval().nanos() / 1e9;
    return new Stream(*this, asked > 0 ? std::max(asked, 0.1) : 30);
  }

 private:
  class Stream final : public grpc::ServerWriteReactor<Report> {
   public:
    Stream(const Load& load, double interval) : load_(load), interval_(interval) { Tell(); }

    void OnWriteDone(bool ok) override {
      {
        std::lock_guard<std::mutex> lock(mu_);
        if (ok && !cancelled_) {
          const auto next = std::chrono::duration_cast<std::chrono::microseconds>(interval_);
          return alarm_.Set(std::chrono::system_clock::now() + next, [this](bool due) { due ? Tell() : Finish(grpc::Status::CANCELLED); });
        }
      }
      Finish(grpc::Status::CANCELLED);
    }

    void OnCancel() override {
      std::lock_guard<std::mutex> lock(mu_);
      cancelled_ = true;
      alarm_.Cancel();
    }

    void OnDone() override { delete this; }

   private:
    void Tell() {
      const long begun = load_.Begun();
      if (was_ >= 0) report_.set_rps_fractional((begun - was_) / interval_.count());
      was_ = begun;
      (*report_.mutable_named_metrics())["in_flight"] = load_.InFlight();
      StartWrite(&report_);
    }

    const Load& load_;
    const std::chrono::duration<double> interval_;
    Report report_;
    long was_ = -1;  // not known yet
    std::mutex mu_;
    bool cancelled_ = false;
    grpc::Alarm alarm_;
  };

  std::atomic<long> begun_{0}, ended_{0};
};
