# SPDX-License-Identifier: Apache-2.0
"""libtpu's runtime metric service of a host with four chips, by the real gRPC and protobuf: messages are
declared here after tpu_metric_service.proto, so they are encoded by nobody of ours.

    tpu_runtime_server.py      prints its port, then each metric that it is asked for; ends with stdin
"""
import sys
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE = "tpu.monitoring.runtime"
KINDS = {"double": 1, "int64": 3, "bool": 8, "string": 9}
# message: its fields; a field's kind that is no scalar is a message; "*" = repeated, "|" = of the oneof
MESSAGES = {
    "Gauge": [("as_double", 1, "|double"), ("as_int", 2, "|int64"), ("as_string", 3, "|string"),
              ("as_bool", 4, "|bool")],
    "AttrValue": [("string_attr", 1, "|string"), ("bool_attr", 2, "|bool"), ("int_attr", 3, "|int64"),
                  ("double_attr", 4, "|double")],
    "Attribute": [("key", 1, "string"), ("value", 2, "AttrValue")],
    "Timestamp": [("seconds", 1, "int64"), ("nanos", 2, "int64")],
    "Metric": [("attribute", 1, "Attribute"), ("timestamp", 2, "Timestamp"), ("gauge", 3, "Gauge")],
    "TPUMetric": [("name", 1, "string"), ("description", 2, "string"), ("metrics", 3, "*Metric")],
    "MetricRequest": [("metric_name", 1, "string"), ("skip_node_aggregation", 2, "bool")],
    "MetricResponse": [("metric", 1, "TPUMetric")],
}
VALUES = {
    "tpu.runtime.tensorcore.dutycycle.percent": ("as_double", [0.0, 12.5, 99.9, 100.0]),
    "tpu.runtime.hbm.memory.usage.bytes": ("as_int", [0, 1, 2**31, 16911433728]),
    "tpu.runtime.hbm.memory.total.bytes": ("as_int", [16911433728] * 4),
}


def declare():
    file = descriptor_pb2.FileDescriptorProto(name="tpu.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            bare = kind.lstrip("*|")
            f = message.field.add(name=field, number=number, type=KINDS.get(bare, 11), label=3 if kind[0] == "*" else 1)
            if bare not in KINDS:
                f.type_name = f".{PACKAGE}.{bare}"
            if kind[0] == "|":
                if not message.oneof_decl:
                    message.oneof_decl.add(name="value")
                f.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {m: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{m}")) for m in MESSAGES}


def main():
    types = declare()

    def answer(request, context):
        print(request.metric_name, flush=True)
        if request.metric_name not in VALUES:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such metric")
        field, values = VALUES[request.metric_name]
        response = types["MetricResponse"]()
        response.metric.name = request.metric_name
        for device, value in enumerate(values):
            metric = response.metric.metrics.add()
            metric.attribute.key = "device-id"
            metric.attribute.value.int_attr = device
            metric.timestamp.seconds = 1790000000
            setattr(metric.gauge, field, value)
        return response

    handler = grpc.unary_unary_rpc_method_handler(answer, request_deserializer=types["MetricRequest"].FromString,
                                                  response_serializer=types["MetricResponse"].SerializeToString)
    service = grpc.method_handlers_generic_handler(f"{PACKAGE}.RuntimeMetricService", {"GetRuntimeMetric": handler})
    server = grpc.server(futures.ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers((service,))
    port = server.add_secure_port("localhost:0", grpc.local_server_credentials())
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop(0)


main()
