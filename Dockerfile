# syntax=docker/dockerfile:1
# A container image of `savoir serve`.
#
# Build the packages first, because the image takes the program from the archive:
#
#   make dist GLIBC=2.28
#   docker build --tag savoir .
#   docker run --publish 127.0.0.1:7878:7878 --volume savoir:/data savoir
#
# The log of the first start has a link that creates the administrator. In a container, requests come
# from the address of the bridge and not from the same machine, so that nobody else can create an
# account (SAVOIR_REGISTRATION). Every option of `savoir serve` has a variable: docs/guides/server.md.
#
# The sandbox inside of a container. Checking, scanning, converting and serving skills work in any
# container. Tools of skills run only if the sandbox can create user namespaces, which the default
# settings of Docker forbid: there, Savoir runs no tools (docs/concepts/security.md).
# `docker run … savoir doctor` says what works. The sandbox needs:
#   - a seccomp profile that allows clone with new namespaces, mount, umount2, pivot_root, open_tree,
#     move_mount and mount_setattr:
#                       --security-opt seccomp=PROFILE.json   (or seccomp=unconfined)
#   - no AppArmor profile that forbids mounts and user namespaces:
#                       --security-opt apparmor=unconfined
#   - a /proc of which nothing is hidden, because the kernel refuses to mount another one otherwise:
#                       --security-opt systempaths=unconfined   (Podman: unmask=ALL)
#   - user namespaces on the host: kernel.unprivileged_userns_clone=1 (older Debian),
#     kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), user.max_user_namespaces above 0.
# It needs neither --privileged nor a capability, and root inside of the container is not necessary.
# These options widen what the container itself may do, so use them only if tools must run there.
# Python tools also need python3 and python3-venv, which this image does not have.

FROM debian:bookworm-slim AS unpack
ARG TARGETARCH
COPY target/dist-packages/savoir-*-unknown-linux-gnu.tar.gz /packages/
WORKDIR /unpacked
RUN case "$TARGETARCH" in \
        amd64|"") target=x86_64-unknown-linux-gnu ;; \
        arm64) target=aarch64-unknown-linux-gnu ;; \
        *) echo "error: there is no binary for $TARGETARCH" >&2; exit 1 ;; \
    esac \
    && tar -xzf /packages/savoir-*-"$target".tar.gz --strip-components=1 --no-same-owner

FROM debian:bookworm-slim
LABEL org.opencontainers.image.title="savoir" \
      org.opencontainers.image.description="Check, install, run and share agent skills" \
      org.opencontainers.image.source="https://github.com/savoir-dev/savoir" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"

# Certificates for connections to models and registries; git for skills from repositories; libgcc if
# the program was not built with zig. Versions are those of the base image's release.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git libgcc-s1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --user-group --create-home --shell /usr/sbin/nologin savoir \
    && install --directory --owner=savoir --group=savoir --mode=0700 /data

COPY --from=unpack /unpacked/savoir /usr/local/bin/savoir
COPY --from=unpack /unpacked/LICENSE-MIT /unpacked/LICENSE-APACHE /usr/share/doc/savoir/

USER 10001:10001
WORKDIR /home/savoir
ENV SAVOIR_ADDRESS=0.0.0.0:7878 \
    SAVOIR_DATA=/data
VOLUME /data
EXPOSE 7878

# bash is in the base image and curl is not. The port is the one of SAVOIR_ADDRESS.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${SAVOIR_ADDRESS##*:} && printf 'GET /health HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && grep --quiet '\"healthy\"' <&3"]

ENTRYPOINT ["savoir"]
CMD ["serve"]
