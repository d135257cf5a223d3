"""The load of a server of grpc.aio, as its clients ask for it by ORCA."""

import asyncio

import orca_pb2
import orca_pb2_grpc


class Load(orca_pb2_grpc.OpenRcaServiceServicer):
    """Counts RPCs: what a handler does is done `with load:`."""

    in_flight = begun = 0

    def __enter__(self):
        self.in_flight, self.begun = self.in_flight + 1, self.begun + 1

    def __exit__(self, *_):
        self.in_flight -= 1

    async def StreamCoreMetrics(self, request, context):
        asked = request.report_interval.ToTimedelta().total_seconds()
        interval = max(asked, 0.1) if asked > 0 else 30
        rps = 0  # not known yet
        while True:
            begun = self.begun
            yield orca_pb2.OrcaLoadReport(named_metrics={"in_flight": self.in_flight}, rps_fractional=rps)
            await asyncio.sleep(interval)
            rps = (self.begun - begun) / interval
