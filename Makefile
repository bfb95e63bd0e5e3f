# `make run` and `make test` are all a newcomer needs; both install what the build needs.

.PHONY: run test check bench bench-side fuzz chaos soak mutants golden dist deb sbom docker clean

## Start the gateway with three simulated engines.
run:
	@scripts/setup.sh
	cargo run -- run -c conf/streamgate.yaml

## Pass the tests.
test:
	@scripts/setup.sh test
	scripts/test.sh

## Everything that must hold before a change lands.
check:
	@scripts/setup.sh test
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps
	scripts/test.sh

## Speed, side by side with nginx. Takes some minutes; wants a quiet machine.
bench:
	@scripts/setup.sh
	scripts/bench.sh

## The same beside HAProxy, Envoy and other gateways for models, which it installs below target/contenders. Takes half an hour.
bench-side:
	@scripts/setup.sh
	scripts/bench.sh --contenders --pictures target/pictures

## Fuzz every parser of foreign bytes, a minute each; with a nightly compiler and cargo-fuzz it is led by coverage.
fuzz:
	scripts/fuzz.sh

## Run the fault matrix and keep the score: some ten minutes. ROW=B4 runs one row and shows what happened when; FULL=1 is for by hand.
chaos:
	@scripts/setup.sh test
	@ROW="$(ROW)" FULL="$(FULL)" scripts/chaos.sh

## Random faults under mixed load for as long as T says. SEED repeats a run.
soak:
	@scripts/setup.sh test
	@T="$(or $(T),10m)" SEED="$(SEED)" scripts/soak.sh

## Seed known bugs, one at a time; the matrix must catch each. NAME runs one of them.
mutants:
	@scripts/setup.sh test
	@scripts/mutants.sh $(NAME)

## Rewrite the golden files of the tests.
golden:
	UPDATE_GOLDEN=1 cargo test --test sse_golden --test proxy --test config_files --test docs

## Make target/package/streamgate-VERSION-MACHINE-linux-gnu.tar.gz and its checksum; the binary needs only glibc.
dist:
	@scripts/setup.sh package
	scripts/package.sh dist

## Make target/package/streamgate_VERSION_ARCHITECTURE.deb (needs cargo-deb).
deb:
	@scripts/setup.sh package
	scripts/package.sh deb

## Write target/package/streamgate.cdx.json, a CycloneDX list of everything inside (needs cargo-cyclonedx).
sbom:
	scripts/sbom.sh

## Build the image (needs a Docker engine).
docker:
	docker build -f docker/Dockerfile -t streamgate .

clean:
	cargo clean
