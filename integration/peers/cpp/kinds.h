#pragma once

#include <deque>

#include "call.h"

// UnaryCall answers at once, or when it is no longer held.
class UnaryCall final : public Call<grpc::ServerUnaryReactor> {
 public:
  UnaryCall(Node& node, grpc::CallbackServerContext* context, const SimpleRequest* request,
            SimpleResponse* response)
      : Call(node, context), status_(StatusFor(*request)) {
    response->set_username(node.name());
    response->set_server_id(node.name());
    response->mutable_payload()->mutable_body()->resize(request->response_size());
  }

  void Begin() override {
    if (!held()) End(status_);
  }

 private:
  const grpc::Status status_;
};

// InputCall adds up what it is sent, until the client half-closes.
class InputCall final : public Call<grpc::ServerReadReactor<StreamingInputCallRequest>> {
 public:
  InputCall(Node& node, grpc::CallbackServerContext* context, StreamingInputCallResponse* response)
      : Call(node, context), response_(response) {}

  void Begin() override {
    if (held()) StartSendInitialMetadata();
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK);
    sum_ += request_.payload().body().size();
    response_->set_aggregated_payload_size(sum_);
    UnlessOver([this] { StartRead(&request_); });
  }

 private:
  StreamingInputCallResponse* const response_;
  StreamingInputCallRequest request_;
  int sum_ = 0;
};

// Responses is what a stream has to send.
class Responses {
 public:
  void Add(const StreamingOutputCallRequest& request) {
    for (const auto& p : request.response_parameters()) {
      sizes_.push_back(p.size());
    }
  }
  void AddEmpty() { sizes_.push_back(0); }
  bool empty() const { return sizes_.empty(); }

  // Next is valid until it is called again.
  const StreamingOutputCallResponse* Next() {
    next_.mutable_payload()->mutable_body()->assign(sizes_.front(), '\0');
    sizes_.pop_front();
    return &next_;
  }

 private:
  std::deque<int> sizes_;
  StreamingOutputCallResponse next_;
};

// OutputCall sends what the request asks for. A held one sends one response and
// waits.
class OutputCall final : public Call<grpc::ServerWriteReactor<StreamingOutputCallResponse>> {
 public:
  OutputCall(Node& node, grpc::CallbackServerContext* context, const StreamingOutputCallRequest* request)
      : Call(node, context) {
    held() ? responses_.AddEmpty() : responses_.Add(*request);
  }

  void Begin() override { Continue(); }
  void OnWriteDone(bool ok) override {
    if (ok) Continue();
  }

 private:
  void Continue() {
    if (!responses_.empty()) {
      UnlessOver([this] { StartWrite(responses_.Next()); });
    } else if (!held()) {
      End(grpc::Status::OK);
    }
  }

  Responses responses_;
};

// DuplexCall answers each request with what it asks for, until the client
// half-closes. A held one answers with one response each, and sends one first.
class DuplexCall final
    : public Call<grpc::ServerBidiReactor<StreamingOutputCallRequest, StreamingOutputCallResponse>> {
 public:
  DuplexCall(Node& node, grpc::CallbackServerContext* context) : Call(node, context) {
    if (held()) responses_.AddEmpty();
  }

  void Begin() override { Continue(); }
  void OnWriteDone(bool ok) override {
    if (ok) Continue();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK);
    if (auto status = StatusFor(request_); !status.ok()) return End(status);
    held() ? responses_.AddEmpty() : responses_.Add(request_);
    Continue();
  }

 private:
  void Continue() {
    UnlessOver([this] { responses_.empty() ? StartRead(&request_) : StartWrite(responses_.Next()); });
  }

  StreamingOutputCallRequest request_;
  Responses responses_;
};
