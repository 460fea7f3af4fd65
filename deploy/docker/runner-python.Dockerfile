# Runs folders of `berth deploy` with Python, on Docker and Kubernetes (setting runner.pythonImage):
#   docker build -f deploy/docker/runner-python.Dockerfile --build-arg BERTH_IMAGE=berth -t berth-runner-python .
# Folders with a Node handler run in the image of Berth itself. Add what your handlers need here, such as CUDA's libraries.
ARG BERTH_IMAGE=ghcr.io/berth-cloud/berth:0.2.0
FROM ${BERTH_IMAGE}
USER root
RUN apt-get update \
  && apt-get install -y --no-install-recommends python3 python3-pip python3-venv \
  && rm -rf /var/lib/apt/lists/*
USER 10001:10001
CMD ["runner"]
