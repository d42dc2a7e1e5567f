"""Sends a trace and log records as the OpenTelemetry Python SDK does: python -m tests.sdk_sender URL [gzip].

Prints the trace id. One span fails with an exception; the SDK's own batches and its own exporter are used.
"""

import logging
import sys

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

STEPS = 600
"""More than one export of the SDK holds."""


def main(url: str, packing: str) -> None:
    compression = Compression.Gzip if packing == "gzip" else Compression.NoCompression
    resource = Resource.create({"service.name": "sdk", "jobsub.job.id": "7.0@schedd"})
    spans = TracerProvider(resource=resource)
    spans.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces", compression=compression, timeout=10))
    )
    logs = LoggerProvider(resource=resource)
    logs.add_log_record_processor(
        BatchLogRecordProcessor(OTLPLogExporter(f"{url}/v1/logs", compression=compression, timeout=10))
    )
    logger = logging.getLogger("work")
    logger.addHandler(LoggingHandler(logger_provider=logs))
    tracer = spans.get_tracer("work")
    with tracer.start_as_current_span("job") as root:
        for number in range(STEPS):
            with tracer.start_as_current_span("step", attributes={"step": number}):
                pass
        try:
            with tracer.start_as_current_span("last"):
                logger.error("going wrong at %s", "last")
                raise RuntimeError("it broke")
        except RuntimeError:
            pass
        trace_id = trace.format_trace_id(root.get_span_context().trace_id)
    spans.shutdown()
    logs.shutdown()
    sys.stdout.write(trace_id)


if __name__ == "__main__":
    main(sys.argv[1], "".join(sys.argv[2:]))
