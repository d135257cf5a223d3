#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "node.h"
#include "testservice.grpc.pb.h"

using grpc::testing::SimpleRequest;
using grpc::testing::SimpleResponse;
using grpc::testing::StreamingInputCallRequest;
using grpc::testing::StreamingInputCallResponse;
using grpc::testing::StreamingOutputCallRequest;
using grpc::testing::StreamingOutputCallResponse;

// Call is what the RPCs of all kinds have in common. It lives until gRPC is done
// with it.
template <class Reactor>
class Call : public Reactor, public Held {
 public:
  // Start is called once, with the one pointer to the call there is.
  void Start(std::shared_ptr<Held> self) {
    self_ = std::move(self);
    node_.Enter();
    if (held_) node_.Hold(self_);
    Begin();
  }

  void OnDone() final {
    node_.Leave(self_);
    self_.reset();
  }

  void OnCancel() final { End({grpc::StatusCode::CANCELLED, "the client has left"}); }

  void End(grpc::Status status) final {
    std::lock_guard<std::mutex> lock(mu_);
    if (!std::exchange(over_, true)) this->Finish(std::move(status));
  }

 protected:
  // A handler that is to throw does so here, before gRPC has a reactor.
  Call(Node& node, grpc::CallbackServerContext* context)
      : node_(node), held_(Asked(context, "hold")) {
    if (Asked(context, "throw")) throw std::runtime_error("the handler throws on request");
    context->AddInitialMetadata("node", node.name());
    const auto& sent = context->client_metadata();
    if (auto it = sent.find(kEchoInitial); it != sent.end())
      context->AddInitialMetadata(kEchoInitial, {it->second.data(), it->second.size()});
    if (auto it = sent.find(kEchoTrailing); it != sent.end())
      context->AddTrailingMetadata(kEchoTrailing, {it->second.data(), it->second.size()});
  }

  // Begin starts the first operation.
  virtual void Begin() = 0;

  bool held() const { return held_; }

  // UnlessOver does what is of no use and not allowed once the RPC is over.
  template <class F>
  void UnlessOver(F f) {
    std::lock_guard<std::mutex> lock(mu_);
    if (!over_) f();
  }

 private:
  static bool Asked(grpc::CallbackServerContext* context, const char* key) {
    return context->client_metadata().count(key) > 0;
  }

  static constexpr char kEchoInitial[] = "x-grpc-test-echo-initial";
  static constexpr char kEchoTrailing[] = "x-grpc-test-echo-trailing-bin";

  Node& node_;
  const bool held_;
  std::shared_ptr<Held> self_;
  std::mutex mu_;
  bool over_ = false;
};

// Handle is a handler's body.
template <class T, class... Args>
T* Handle(Args&&... args) {
  auto call = std::make_shared<T>(std::forward<Args>(args)...);
  call->Start(call);
  return call.get();
}

template <class Request>
grpc::Status StatusFor(const Request& request) {
  const auto& status = request.response_status();
  return {static_cast<grpc::StatusCode>(status.code()), status.message()};
}
