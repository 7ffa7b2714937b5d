#!/bin/sh
# SPDX-License-Identifier: MIT
# Serves a folder of models by the Triton Inference Server of the wheel nvidia-pytriton, with this engine as its backend:
#
#     python3 -m venv venv && venv/bin/pip install --no-deps nvidia-pytriton
#     PYTHON=venv/bin/python LIBRARIES=build/lib examples/serving/triton.sh models [OPTIONS OF tritonserver]
#
# PYTHON has the wheel, LIBRARIES is the folder of libtriton_migraphx.so and libmigraphx_c.so.3. It listens on loopback
# (ADDRESS), HTTP on 8000, gRPC on 8001, metrics on 8002.
set -eu
models=${1:?"a folder of models"}
shift
packages=${PACKAGES:-$("${PYTHON:-python3}" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')}
libraries=${LIBRARIES:-/usr/local/lib}
address=${ADDRESS:-127.0.0.1}
server=$packages/pytriton/tritonserver
[ -e "$server/bin/tritonserver" ] || { echo "no tritonserver in $packages: pip install --no-deps nvidia-pytriton" >&2; exit 1; }
[ -e "$libraries/libtriton_migraphx.so" ] || { echo "no libtriton_migraphx.so in $libraries (LIBRARIES)" >&2; exit 1; }
[ -x "$server/bin/tritonserver" ] || chmod +x "$server/bin/tritonserver"

# The server looks for a backend in a folder of its name; under the other two it finds models that have no configuration.
backends=${BACKENDS:-$(mktemp -d)}
for name in migraphx onnxruntime tensorflow; do
    mkdir -p "$backends/$name"
    cp "$libraries/libtriton_migraphx.so" "$backends/$name/libtriton_$name.so"
    cp "$libraries/libmigraphx_c.so.3" "$backends/$name/"
done
[ -e "$backends/python" ] || ln -s "$server/backends/python" "$backends/python"
LD_LIBRARY_PATH=$packages/nvidia_pytriton.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$server/bin/tritonserver" --model-repository "$models" --backend-directory "$backends" --cache-directory "$server/caches" \
    --http-address "$address" --grpc-address "$address" --metrics-address "$address" "$@"
