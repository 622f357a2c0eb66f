# syntax=docker/dockerfile:1
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY constraints.txt pyproject.toml ./
COPY deploy/runtime_lock.py deploy/
# Two environments: one to build in, one without pip to be shipped. Every download is checked against its hash.
RUN python -m venv /build \
 && python deploy/runtime_lock.py --only setuptools wheel > build.txt \
 && python deploy/runtime_lock.py > runtime.txt \
 && /build/bin/pip install --no-cache-dir --require-hashes --no-deps --only-binary :all: -r build.txt \
 && python -m venv --without-pip /opt/afterturn \
 && /build/bin/pip --python /opt/afterturn/bin/python install --no-cache-dir --require-hashes --no-deps \
    --only-binary :all: -r runtime.txt
COPY . .
RUN /build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
 && /build/bin/pip --python /opt/afterturn/bin/python install --no-cache-dir --no-deps --no-index /wheels/*.whl \
 && /opt/afterturn/bin/python -m compileall -q /opt/afterturn/lib

FROM python:${PYTHON}-slim
RUN python -m pip uninstall --yes --quiet pip setuptools wheel 2>/dev/null; \
    useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin afterturn; \
    install --directory --owner 10001 --mode 0700 /packages
COPY --from=build /opt/afterturn /opt/afterturn
# Safe path: a folder `models` or `config` where the container starts must not pass for ours.
ENV PATH=/opt/afterturn/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PYTHONSAFEPATH=1
WORKDIR /tmp
USER 10001:10001
EXPOSE 8321
ENTRYPOINT ["afterturn"]
CMD ["api"]
