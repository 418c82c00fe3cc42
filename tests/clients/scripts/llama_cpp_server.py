"""llama.cpp's own HTTP server, from the package xllamacpp; arguments: a GGUF file and a port."""

import sys
import time

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.hostnames, parameters.port = ["127.0.0.1"], int(sys.argv[2])
parameters.n_ctx = 2048
parameters.n_parallel = 1
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
while True:
    time.sleep(1)
