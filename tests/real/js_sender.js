// Sends one trace as the OpenTelemetry JavaScript SDK does: node js_sender.js URL json|protobuf none|gzip
// Prints the trace id. Packages are found by NODE_PATH.
const { trace, context, SpanStatusCode } = require("@opentelemetry/api");
const { NodeTracerProvider, BatchSpanProcessor } = require("@opentelemetry/sdk-trace-node");
const { resourceFromAttributes } = require("@opentelemetry/resources");

const [url, encoding, compression] = process.argv.slice(2);
const exporters = { json: "@opentelemetry/exporter-trace-otlp-http", protobuf: "@opentelemetry/exporter-trace-otlp-proto" };
const { OTLPTraceExporter } = require(exporters[encoding]);

const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ "service.name": "node", "jobsub.job.id": "8.0@schedd" }),
  spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url: `${url}/v1/traces`, compression }))],
});
const tracer = provider.getTracer("work");
const root = tracer.startSpan("job");
const within = trace.setSpan(context.active(), root);
for (let step = 0; step < 600; step++) tracer.startSpan("step", { attributes: { step, big: "x".repeat(100) } }, within).end();
const last = tracer.startSpan("last", {}, within);
last.recordException(new Error("it broke"));
last.setStatus({ code: SpanStatusCode.ERROR, message: "it broke" });
last.end();
root.end();
provider.shutdown().then(() => process.stdout.write(root.spanContext().traceId));
