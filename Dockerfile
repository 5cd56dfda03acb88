# For machines with a GPU (the NVIDIA container toolkit) and without one:
#   docker build -t cselab .
#   docker run --rm --gpus all -v "$PWD/outputs:/cselab/outputs" cselab run 02 03 --profile paper
#   docker run --rm --gpus all -p 8888:8888 -v "$PWD/outputs:/cselab/outputs" --entrypoint jupyter cselab \
#       lab --ip=0.0.0.0 --allow-root notebooks
# torch of the package index brings the CUDA libraries; data and the hub's cache are mounted, such as
# -v /data:/data -e CSELAB_DATA=/data -v "$HOME/.cache/huggingface:/root/.cache/huggingface".
FROM python:3.12-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ git \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /cselab
COPY . .
RUN pip install --no-cache-dir -c constraints.txt -e .
ENTRYPOINT ["cselab"]
CMD ["doctor"]
