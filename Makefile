# hetviz: one non-recursive Makefile. `make help` lists the targets.
# MODE=release|debug|asan|fuzz picks one of the build folders; nothing is ever cleaned by hand.
MODE    ?= release
V       ?= 0
PREFIX  ?= /usr/local
DESTDIR ?=
MODE    := $(strip $(MODE))
VERSION := 0.1.0
ifeq ($(MODE),release)
B := build
else
B := build/$(MODE)
endif
O := build/obj/$(MODE)

# ---- libraries -------------------------------------------------------------------------------
PKGS_SOLVER := jansson libutf8proc expat yaml-0.1 zlib gmp sqlite3
PKGS_HEADER := cairo # loaded at run time, when a picture asks for it
PKGS_LUA    := lua5.4
PKGS_TERM   := ncursesw
PKGS_TEST   := cmocka vterm
# third-party headers are -isystem, so that our warnings never fire inside them
# each library is asked for on its own, silently: one that is missing (those of the tests where only the program is built)
# takes nothing from the others; .ci/deps says what is missing
sysinc = $(patsubst -I%,-isystem %,$(sort $(foreach p,$(1),$(shell pkg-config --cflags-only-I $(p) 2>/dev/null))))
# libraries are linked in where their archives are found: a start is half a millisecond faster. For
# packages, which want them shared: make SHARED=1
LIB_DIR := $(shell pkg-config --variable=libdir jansson 2>/dev/null)
archive  = $(if $(SHARED),,$(wildcard $(LIB_DIR)/lib$(patsubst -l%,%,$(1)).a))
linked   = $(foreach l,$(1),$(or $(call archive,$(l)),$(l)))
# lp_solve ships no pkg-config file; the static library needs colamd after it
LPSOLVE_LIBS ?= -llpsolve55 -lcolamd -lsuitesparseconfig
LIBS_SOLVER  := $(call linked,$(shell pkg-config --libs $(PKGS_SOLVER) 2>/dev/null) $(LPSOLVE_LIBS)) -lm -ldl -lpthread
LIBS_LUA     := $(call linked,$(shell pkg-config --libs $(PKGS_LUA) 2>/dev/null)) -lm -ldl
LIBS_TERM    := $(call linked,$(shell pkg-config --libs $(PKGS_TERM) 2>/dev/null))
LIBS_TEST     = $(shell pkg-config --libs $(PKGS_TEST) 2>/dev/null) -lutil

# ---- flags -----------------------------------------------------------------------------------
WARN := -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wdouble-promotion -Wshadow -Wvla \
        -Wundef -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
        -Wpointer-arith -Wcast-qual -Wwrite-strings -Wswitch-enum -Wimplicit-fallthrough \
        -Wunused-result -Wno-gnu-zero-variadic-macro-arguments
ifeq ($(MODE),fuzz)
CC := clang
endif
CC_KIND  := $(if $(findstring clang,$(shell $(CC) --version 2>/dev/null)),clang,gcc)
WARN_gcc := -Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wjump-misses-init

CFLAGS_release := -O2 -g -DNDEBUG -D_FORTIFY_SOURCE=2 -fstack-protector-strong
CFLAGS_debug   := -O0 -g3 -DHV_DEBUG=1
CFLAGS_asan    := -O1 -g -DHV_DEBUG=1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_fuzz    := -O1 -g -DHV_DEBUG=1 -fsanitize=fuzzer-no-link,address,undefined -fno-omit-frame-pointer
ifeq ($(shell uname -s),Linux) # fewer pages for the loader to touch; linkers that do not know it say so and go on
LDFLAGS_release := -Wl,-O1 -Wl,--as-needed -Wl,-z,pack-relative-relocs
endif
LDFLAGS_asan   := -fsanitize=address,undefined
LDFLAGS_fuzz   := -fsanitize=address,undefined
ALL_CPPFLAGS = -I. -D_XOPEN_SOURCE=700 -DHV_VERSION='"$(VERSION)"' \
               $(call sysinc,$(PKGS_SOLVER) $(PKGS_HEADER) $(PKGS_LUA) $(PKGS_TERM) $(PKGS_TEST)) $(CPPFLAGS)
ALL_CFLAGS   = -std=c11 -fno-common $(CFLAGS_$(MODE)) $(WARN) $(WARN_$(CC_KIND)) $(if $(WERROR),-Werror) $(CFLAGS)
ALL_LDFLAGS  = $(LDFLAGS_$(MODE)) $(LDFLAGS)

# ---- sources by layer: the order is the order of dependence -----------------------------------
# a room is a folder with all that lies below it
sources        = $(sort $(shell find $(1) -name '*.c'))
SRC_SOLVER    := $(call sources,$(filter-out solver/profiler,$(wildcard solver/*)))
SRC_SCRIPTING := $(call sources,scripting)
SRC_SESSION   := $(call sources,ui/process ui/command ui/lever ui/session)
SRC_VIEW      := $(call sources,ui/view ui/screens)
SRC_CLI       := $(call sources,ui/cli)
SRC_TERM      := $(sort $(wildcard ui/term/*.c))
# the profiler is a program of its own; all of it but cuda/ builds and is tested everywhere
SRC_PROFILER  := $(sort $(wildcard solver/profiler/*.c))
SRC_CUDA      := $(sort $(wildcard solver/profiler/cuda/*.c))
SRC_LIB       := $(SRC_SOLVER) $(SRC_SCRIPTING) $(SRC_SESSION) $(SRC_VIEW)
SRC_PROGRAM   := $(SRC_CLI) $(SRC_TERM) $(wildcard ui/main.c)
SRC_UNIT      := $(sort $(wildcard tests/unit/test_*.c))
SRC_SCREEN    := $(sort $(wildcard tests/screen/test_*.c))
SRC_PTY       := $(sort $(wildcard tests/pty/test_*.c))
SRC_FUZZ      := $(sort $(wildcard tests/fuzz/fuzz_*.c))
SRC_BENCH     := $(sort $(wildcard tests/bench/bench_*.c))
SRC_TESTS     := $(SRC_UNIT) $(SRC_SCREEN) $(SRC_PTY) $(SRC_FUZZ) $(SRC_BENCH) tests/fuzz/driver.c
obj = $(patsubst %.c,$(O)/%.o,$(1))

LIB   := $(B)/libhetviz.a
BIN   := $(B)/hetviz
# the profiler is built where the CUDA toolkit is found; nothing else needs it
CUDA_HOME ?= /usr/local/cuda
NVCC      := $(wildcard $(CUDA_HOME)/bin/nvcc)
HAS_CUDA  := $(and $(NVCC),$(wildcard $(CUDA_HOME)/include/cublasLt.h),$(wildcard $(CUDA_HOME)/include/cuda_runtime_api.h),$(wildcard $(CUDA_HOME)/lib64/libcublasLt.so))
PROFILER  := $(if $(HAS_CUDA),$(B)/hetviz-profile)
UNIT  := $(patsubst tests/unit/%.c,$(B)/tests/%,$(SRC_UNIT))
SCREEN:= $(patsubst tests/screen/%.c,$(B)/tests/%,$(SRC_SCREEN))
PTY   := $(patsubst tests/pty/%.c,$(B)/tests/%,$(SRC_PTY))
FUZZ  := $(patsubst tests/fuzz/%.c,$(B)/tests/%,$(SRC_FUZZ))
BENCH := $(patsubst tests/bench/%.c,$(B)/tests/%,$(SRC_BENCH))
ALL_OBJ := $(call obj,$(SRC_LIB) $(SRC_PROFILER) $(SRC_CUDA) $(SRC_PROGRAM) $(SRC_TESTS))

ifeq ($(V),0)
Q = @
say = @printf '  %-5s %s\n' $(1) $@
endif

.PHONY: all run test test-all unit screen pty lua e2e ecosystem fuzz fuzz-corpus fuzz-programs soak bench lint layers headers format \
        format-check compdb deps pages pictures deb install dist help clean FORCE
all: $(BIN) $(PROFILER)  ## build the program and the library

# rebuild when flags or the compiler change
$(O)/flags: FORCE
	@mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(LIBS_LUA) $(LIBS_TERM) $(LIBS_SOLVER))' > $@.new; \
	 if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi

$(O)/%.o: %.c $(O)/flags
	$(call say,CC)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

# only one source knows where the program will be installed, so `make install PREFIX=…` builds little
$(O)/prefix: FORCE
	@mkdir -p $(@D); echo '$(PREFIX)' > $@.new; if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi
$(O)/solver/base/file.o: ALL_CPPFLAGS += -DHV_PREFIX='"$(PREFIX)"'
$(O)/solver/base/file.o: $(O)/prefix

# what `hetviz --version --json` says of this build; the library does not know it, so that a commit
# links the program again and not every test. COMMIT may be given where there is no git (packages)
COMMIT   ?= $(shell git describe --always --abbrev=12 --exclude '*' --dirty=+ 2>/dev/null)
c_string  = $(subst ",\",$(subst \,\\,$(1)))
$(O)/ui/cli/build_facts.inc: FORCE
	@mkdir -p $(@D); printf '%s\n' '#define HV_BUILD_COMMIT "$(call c_string,$(COMMIT))"' '#define HV_BUILD_MODE "$(MODE)"' \
	  '#define HV_BUILD_FLAGS "$(subst ','\'',$(call c_string,$(strip $(CFLAGS_$(MODE)) $(CFLAGS) $(CPPFLAGS))))"' > $@.new; \
	 if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi
$(O)/ui/cli/version.o: ALL_CPPFLAGS += -I$(O)
$(O)/ui/cli/version.o: $(O)/ui/cli/build_facts.inc

# the reference of the plugin API is written from the comments above its functions; the list of their
# files is a prerequisite, so that what a deleted file said leaves the reference too
API_TEXT := $(sort $(shell find scripting/api -name 'api_*.c')) $(sort $(shell find share/lua -name '*.lua'))
$(O)/api_files: FORCE
	@mkdir -p $(@D); echo '$(API_TEXT)' > $@.new; if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi
$(O)/scripting/plugin/api_docs.inc: scripting/plugin/reference.awk $(API_TEXT) $(O)/api_files
	@mkdir -p $(@D)
	$(Q)awk -f scripting/plugin/reference.awk $(API_TEXT) >$@.new && mv $@.new $@
$(O)/scripting/plugin/reference.o: ALL_CPPFLAGS += -I$(O)
$(O)/scripting/plugin/reference.o: $(O)/scripting/plugin/api_docs.inc

# the list of members is a prerequisite: a deleted source leaves the archive too
$(O)/members: FORCE
	@mkdir -p $(@D); echo '$(SRC_LIB)' > $@.new; if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi

$(LIB): $(call obj,$(SRC_LIB)) $(O)/members
	$(call say,AR)
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(BIN): $(call obj,$(SRC_PROGRAM)) $(LIB)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) $^ $(LIBS_LUA) $(LIBS_TERM) $(LIBS_SOLVER) -o $@

# the CUDA runtime is linked in; cuBLASLt is found where it was found when building
$(call obj,$(SRC_CUDA)): ALL_CPPFLAGS += -isystem $(CUDA_HOME)/include
$(O)/%.cu.o: %.cu $(O)/flags
	$(call say,NVCC)
	@mkdir -p $(@D)
	$(Q)$(NVCC) -O3 -std=c++17 -arch=all-major -I. -c $< -o $@
$(B)/hetviz-profile: $(call obj,$(SRC_CUDA) $(SRC_PROFILER)) $(O)/solver/profiler/cuda/kernels.cu.o $(LIB)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) -L$(CUDA_HOME)/lib64 -Wl,-rpath,$(CUDA_HOME)/lib64 \
	  -lcublasLt -lcudart_static -lstdc++ -lpthread -lrt $(LIBS_LUA) $(LIBS_SOLVER) -o $@

TEST_LINK = $(Q)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LIBS_TEST) $(LIBS_LUA) $(LIBS_TERM) $(LIBS_SOLVER) -o $@
$(UNIT): $(B)/tests/%: $(O)/tests/unit/%.o $(LIB)
	$(call say,LINK)
	$(TEST_LINK)
$(B)/tests/test_profiler: $(call obj,$(SRC_PROFILER))
$(SCREEN): $(B)/tests/%: $(O)/tests/screen/%.o $(call obj,$(SRC_TERM)) $(LIB)
	$(call say,LINK)
	$(TEST_LINK)
$(PTY): $(B)/tests/%: $(O)/tests/pty/%.o $(LIB)
	$(call say,LINK)
	$(TEST_LINK)
$(BENCH): $(B)/tests/%: $(O)/tests/bench/%.o $(LIB)
	$(call say,LINK)
	$(TEST_LINK)
$(B)/tests/bench_screens: $(call obj,$(SRC_TERM))
ifeq ($(MODE),fuzz)
$(FUZZ): $(B)/tests/%: $(O)/tests/fuzz/%.o $(LIB)
	$(call say,LINK)
	$(Q)mkdir -p $(@D) && $(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer $(filter %.o %.a,$^) $(LIBS_LUA) $(LIBS_SOLVER) -o $@
else
$(FUZZ): $(B)/tests/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/driver.o $(LIB)
	$(call say,LINK)
	$(TEST_LINK)
endif

# ---- what people and CI call -------------------------------------------------------------------
run: ## install what is missing, build, start on the sample workspace
	@.ci/deps build
	@echo 'building hetviz; from scratch this takes one to three minutes'
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@$(BIN) $(ARGS)

test: ## install what is missing, build, run every test; ends with "N passed, N failed"
	@.ci/deps test
	@$(MAKE) --no-print-directory -j2 MODE=$(MODE) test-all

TEST_PROGRAMS = $(UNIT) $(SCREEN) $(PTY) $(FUZZ)
test-all: $(BIN) $(PROFILER) $(TEST_PROGRAMS)
	@HETVIZ=$(BIN) CC='$(CC)' tests/run $(B) all
unit: $(BIN) $(UNIT) ## unit tests only
	@HETVIZ=$(BIN) tests/run $(B) unit
screen: $(BIN) $(SCREEN) ## screen tests on the in-memory terminal only
	@HETVIZ=$(BIN) tests/run $(B) screen
pty: $(BIN) $(PTY) ## tests of the real program on a pseudo-terminal only
	@HETVIZ=$(BIN) tests/run $(B) pty
lua: $(BIN) ## self-tests of plugins and Lua libraries only
	@HETVIZ=$(BIN) tests/run $(B) lua
e2e: $(BIN) ## command-line tests only
	@HETVIZ=$(BIN) tests/run $(B) e2e
fuzz-corpus: $(FUZZ) ## every fuzz target once over its corpus
	@tests/run $(B) fuzz
fuzz: ## T seconds (60) of each fuzz target, with clang's libFuzzer
	@$(MAKE) --no-print-directory MODE=fuzz fuzz-run
fuzz-run: $(FUZZ)
	@for f in $(FUZZ); do n=$$(basename $$f); mkdir -p $(B)/corpus/$$n; echo "== $$n"; \
	  $$f -max_total_time=$(or $(T),60) -print_final_stats=1 -artifact_prefix=$(B)/ $(B)/corpus/$$n tests/fuzz/corpus/$${n#fuzz_} || exit 1; done
ecosystem: $(BIN) ## exports against the programs that they are for (installs them from PyPI)
	@HETVIZ=$(BIN) tests/ecosystem/run
soak: $(BIN) $(TEST_PROGRAMS) ## campaigns of hours, of which make test runs a slice; SOAK_S=600 seconds a fuzz target
	@if command -v clang >/dev/null; then $(MAKE) --no-print-directory MODE=fuzz fuzz-programs; fi
	@$(MAKE) --no-print-directory MODE=asan build/asan/tests/test_scripting_hostile
	@tests/soak $(B)
fuzz-programs: $(FUZZ)
bench: $(BIN) $(BENCH) ## measure start, planning, evaluation, memory
	@HETVIZ=$(BIN) tests/bench/run $(B)

# ---- checks of the house ------------------------------------------------------------------------
layers: $(call obj,$(SRC_LIB) $(SRC_PROGRAM)) ## no room reaches up, by linking and by includes; no folders in circles
	@CC='$(CC)' LDFLAGS='$(ALL_LDFLAGS)' tests/lint/layers $(O) '$(LIBS_SOLVER)' '$(LIBS_LUA)'
	@tests/lint/circles $(O)
	@tests/lint/libraries
headers: ## every header compiles on its own; those that need CUDA only where its headers are
	@for h in $$(find solver scripting ui -name '*.h' 2>/dev/null); do \
	  cuda=; case $$h in solver/profiler/cuda/*) cuda='$(if $(HAS_CUDA),-isystem $(CUDA_HOME)/include)'; \
	    [ -n "$$cuda" ] || { echo "skipped, needs the CUDA toolkit: $$h"; continue; };; esac; \
	  printf '#include "%s"\nextern int hv_not_empty;\n' "$$h" | $(CC) $(ALL_CPPFLAGS) $$cuda $(ALL_CFLAGS) -Werror -x c -fsyntax-only - || { echo "not self-contained: $$h" >&2; exit 1; }; done
ALL_TEXT = $(shell git ls-files '*.c' '*.h')
# braces are inserted since clang-format 15
CLANG_FORMAT ?= $(or $(firstword $(foreach v,20 19 18 17 16 15,$(shell command -v clang-format-$(v)))),clang-format)
format: ## clang-format everything in place
	@$(CLANG_FORMAT) -i $(ALL_TEXT)
format-check: ## is everything formatted?
	@$(CLANG_FORMAT) --dry-run -Werror $(ALL_TEXT)
lint: compile_commands.json layers headers format-check ## clang-tidy, cppcheck, luacheck, docs
	@tests/lint/docs
	@luacheck -q share/lua plugins tests/lua
	@clang-tidy -p . --quiet $(SRC_LIB) $(SRC_PROGRAM)
	@cppcheck --quiet --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -I. solver scripting ui
compdb: compile_commands.json ## compilation database for editors
compile_commands.json: Makefile $(O)/flags $(O)/scripting/plugin/api_docs.inc $(O)/ui/cli/build_facts.inc
	@{ echo '['; sep=; for s in $(SRC_LIB) $(SRC_PROGRAM) $(SRC_TESTS); do \
	   printf '%s{"directory":"%s","file":"%s","command":"%s"}\n' "$$sep" '$(CURDIR)' "$$s" \
	     '$(subst ",\\\",$(CC) $(ALL_CPPFLAGS) -I$(O) $(ALL_CFLAGS))'" -c $$s"; sep=,; done; echo ']'; } > $@

deps: ## install what is missing (Debian), or say what to install
	@.ci/deps test
pages: $(BIN) ## write the manual page and the completions that are shipped again
	@mkdir -p share/man share/completions
	@$(BIN) help man >share/man/hetviz.1
	@$(BIN) help man plugin >share/man/hetviz-plugin.7
	@$(BIN) completion bash >share/completions/hetviz.bash
	@$(BIN) completion zsh >share/completions/_hetviz
	@$(BIN) completion fish >share/completions/hetviz.fish
pictures: $(BIN) ## draw the screens of the README again
	@XDG_STATE_HOME=$(B)/state $(BIN) samples/workspaces/mixed --script share/pictures/readme.script --size 150x40
SHARE = $(DESTDIR)$(PREFIX)/share
deb: ## build/hetviz_VERSION_ARCH.deb from a copy of this tree (Debian: dpkg-dev, debhelper)
	@rm -rf build/deb && mkdir -p build/deb/hetviz
	@tar --exclude=./build --exclude=./.git -cf - . | tar -C build/deb/hetviz -xf -
	@cd build/deb/hetviz && COMMIT='$(COMMIT)' DEB_BUILD_OPTIONS="$${DEB_BUILD_OPTIONS-parallel=$$(nproc)}" MAKEFLAGS= dpkg-buildpackage -b -us -uc
	@cp build/deb/*.deb build/deb/*.changes build/deb/*.buildinfo build/ && ls build/*.deb
install: all ## install below $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/hetviz $(SHARE)/man/man1 $(SHARE)/man/man7 $(SHARE)/zsh/site-functions \
	  $(SHARE)/bash-completion/completions $(SHARE)/fish/vendor_completions.d
	install -m 755 $(BIN) $(wildcard $(PROFILER)) $(DESTDIR)$(PREFIX)/bin
	cp -R share/devices share/calibration share/profiles share/validation share/models share/schema share/keys share/themes share/lua share/guide share/pictures plugins samples $(SHARE)/hetviz/
	rm -f $(SHARE)/hetviz/*/*.py # tools of the source tree
	install -m 644 share/man/hetviz.1 $(SHARE)/man/man1/hetviz.1
	install -m 644 share/man/hetviz-plugin.7 $(SHARE)/man/man7/hetviz-plugin.7
	install -m 644 share/completions/hetviz.bash $(SHARE)/bash-completion/completions/hetviz
	install -m 644 share/completions/_hetviz $(SHARE)/zsh/site-functions/_hetviz
	install -m 644 share/completions/hetviz.fish $(SHARE)/fish/vendor_completions.d/hetviz.fish
dist: ## reproducible source archive
	git archive --prefix=hetviz-$(VERSION)/ -o build/hetviz-$(VERSION).tar.gz HEAD
help: ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16
clean:
	rm -rf build compile_commands.json
.SECONDARY: $(ALL_OBJ)
-include $(ALL_OBJ:.o=.d)
