"""A server of gRPC's test service for tests: see ../README.md."""

import argparse
import asyncio
import os
import pathlib
import signal
import sys
import traceback

import grpc
import grpc.aio

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "build" / "python"))
import testservice_pb2 as messages
import testservice_pb2_grpc as services
from load import Load, orca_pb2_grpc

DAY_MS = 24 * 60 * 60 * 1000
CODES = {code.value[0]: code for code in grpc.StatusCode}


class Service(services.TestServiceServicer):
    """Answers RPCs, and ends those that are held."""

    def __init__(self, name):
        self.name = name
        self.load = Load()
        self.ending = asyncio.get_running_loop().create_future()

    def end_held(self, code):
        """Ends the RPCs that are held now."""
        ending, self.ending = self.ending, asyncio.get_running_loop().create_future()
        ending.set_result(code)

    async def EmptyCall(self, request, context):
        return messages.Empty()

    async def UnaryCall(self, request, context):
        async with Call(self, context) as call:
            if call.held:
                await call.wait()
            await call.fail_as(request)
            response = messages.SimpleResponse(username=self.name, server_id=self.name)
            response.payload.body = bytes(request.response_size)
            return response

    async def StreamingOutputCall(self, request, context):
        async with Call(self, context) as call:
            await call.respond(request)
            if call.held:
                await call.wait()

    async def StreamingInputCall(self, requests, context):
        async with Call(self, context) as call:
            total = 0
            while request := await call.read():
                total += len(request.payload.body)
            return messages.StreamingInputCallResponse(aggregated_payload_size=total)

    async def FullDuplexCall(self, requests, context):
        async with Call(self, context) as call:
            if call.held:
                await call.respond()
            while request := await call.read():
                await call.fail_as(request)
                await call.respond(request)


class Call:
    """An RPC while it is handled. The client hears at once who handles it."""

    def __init__(self, service, context):
        self.service = service
        self.context = context
        self.metadata = dict(context.invocation_metadata())
        self.held = "hold" in self.metadata
        self.ending = service.ending

    async def __aenter__(self):
        if "throw" in self.metadata:
            raise RuntimeError("the handler throws on request")
        self.context.set_trailing_metadata(self.echoed("x-grpc-test-echo-trailing-bin"))
        await self.context.send_initial_metadata(
            (("node", self.service.name), *self.echoed("x-grpc-test-echo-initial"))
        )
        self.service.load.__enter__()
        return self

    async def __aexit__(self, *_):
        self.service.load.__exit__()

    def echoed(self, key):
        return ((key, self.metadata[key]),) if key in self.metadata else ()

    async def read(self):
        """Returns the next request, or None when the client has half-closed or the RPC is to end."""
        if not self.held:
            request = await self.context.read()
            return None if request is grpc.aio.EOF else request
        reading = asyncio.ensure_future(self.context.read())
        await asyncio.wait({reading, self.ending}, return_when=asyncio.FIRST_COMPLETED)
        if self.ending.done():
            reading.cancel()
            return await self.wait()
        request = reading.result()
        return None if request is grpc.aio.EOF else request

    async def wait(self):
        """Waits until the RPC is to end."""
        code = await asyncio.shield(self.ending)
        if code != 0:
            await self.context.abort(CODES[code], "ended on request")

    async def respond(self, request=None):
        """Sends what the request asks for; a held RPC, one empty response."""
        sizes = [0] if self.held else [p.size for p in request.response_parameters]
        for size in sizes:
            response = messages.StreamingOutputCallResponse()
            response.payload.body = bytes(size)
            await self.context.write(response)

    async def fail_as(self, request):
        """Fails the RPC if the request wants it to."""
        if request.response_status.code != 0:
            await self.context.abort(CODES[request.response_status.code], request.response_status.message)


async def obey(service):
    """Does what standard input says, until that is closed."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        verb, *rest = line.decode().split()
        if verb == "end":
            service.end_held(int(rest[0]))
        print("live", service.load.in_flight, flush=True)


def number(most):
    """Returns a parser of numbers from 0 to most."""

    def parse(text):
        if not (text.isdecimal() and int(text) <= most):
            raise argparse.ArgumentTypeError(f'"{text}": allowed are 0 to {most}')
        return int(text)

    return parse


def name(text):
    if not text:
        raise argparse.ArgumentTypeError('"": a name is needed')
    return text


def parse_flags():
    flags = argparse.ArgumentParser()
    flags.add_argument("--port", type=number(65535), default=0)
    flags.add_argument("--name", type=name, default="python")
    flags.add_argument("--max-age-ms", type=number(DAY_MS), default=0)
    flags.add_argument("--max-age-grace-ms", type=number(DAY_MS), default=0)
    return flags.parse_args()


async def serve(flags):
    """Serves until standard input is closed or the RPCs are over after SIGTERM."""
    ageing = {
        "grpc.max_connection_age_ms": flags.max_age_ms,
        "grpc.max_connection_age_grace_ms": flags.max_age_grace_ms,
    }
    server = grpc.aio.server(options=[(key, ms) for key, ms in ageing.items() if ms])
    service = Service(flags.name)
    services.add_TestServiceServicer_to_server(service, server)
    orca_pb2_grpc.add_OpenRcaServiceServicer_to_server(service.load, server)
    port = server.add_insecure_port(f"127.0.0.1:{flags.port}")
    term = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, term.set)
    await server.start()
    print("listening", port, flush=True)

    closed = asyncio.create_task(obey(service))
    termed = asyncio.create_task(term.wait())
    await asyncio.wait({closed, termed}, return_when=asyncio.FIRST_COMPLETED)
    if not closed.done():
        drained = asyncio.create_task(server.stop(DAY_MS / 1000))
        await asyncio.wait({closed, drained}, return_when=asyncio.FIRST_COMPLETED)
    if closed.done():
        closed.result()


async def main(flags):
    # The process ends here whatever happens: gRPC may hang when the interpreter
    # ends, as it would once nobody reads what is printed.
    status = 1
    try:
        await serve(flags)
        status = 0
    except (OSError, RuntimeError) as err:
        print("server:", err, file=sys.stderr, flush=True)
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


asyncio.run(main(parse_flags()))
