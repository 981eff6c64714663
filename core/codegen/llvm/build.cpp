// Text to machine code: parse, four passes, object, load. The only file of the folder, with host.cpp, that includes
// LLVM. Context and passes are of the call and the target machine of the thread, so threads do not meet.
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/ExecutionEngine/SectionMemoryManager.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>

#include "base/check.h"
#include "codegen/compile.h"
#include "codegen/llvm/emit.h"
#include "codegen/llvm/symbols.h"

namespace kerf::codegen {

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
}

std::unique_ptr<llvm::TargetMachine> make_machine(const target::CpuTarget& target, OptLevel level) {
  initialize_llvm();
  std::string problem;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(kTriple, problem);
  if (!found) throw RuntimeError("LLVM has no target " + std::string(kTriple) + ": " + problem);
  auto codegen_level = level == OptLevel::O0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default;
  std::unique_ptr<llvm::TargetMachine> machine(
      found->createTargetMachine(kTriple, target.cpu, target.features, llvm::TargetOptions(),
                                 llvm::Reloc::PIC_, llvm::CodeModel::Small, codegen_level, /*JIT=*/true));
  if (!machine) throw RuntimeError("LLVM cannot make a machine for " + target.cpu);
  return machine;
}

// A thread keeps its machine: making one, and the subtarget inside it, is a fifth of building a small kernel. It is
// not safe to share between threads.
llvm::TargetMachine& machine_of_thread(const target::CpuTarget& target, OptLevel level) {
  struct Kept {
    std::string key;
    std::unique_ptr<llvm::TargetMachine> machine;
  };
  thread_local Kept kept;
  std::string key = fmt::format("{} {} {}", target.cpu, target.features, static_cast<int>(level));
  if (kept.key != key) kept = {key, make_machine(target, level)};
  return *kept.machine;
}

std::unique_ptr<llvm::Module> parse(llvm::LLVMContext& context, const std::string& text,
                                    const std::string& name) {
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssembly(llvm::MemoryBufferRef(text, name), diagnostic, context);
  std::string problem;
  llvm::raw_string_ostream out(problem);
  if (!module) {
    diagnostic.print(name.c_str(), out, false);
  } else if (!llvm::verifyModule(*module, &out)) {
    return module;
  }
  CHECK(false, "kernel {}: invalid LLVM IR: {}\n{}", name, problem, text);
}

// Explicit vectors leave little to do: the default pipelines take twice the time and find nothing (they unroll and
// vectorise again).
void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(
      llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
  for (llvm::Function& function : module) {
    if (!function.isDeclaration()) passes.run(function, functions);
  }
}

std::string generate_object(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    throw RuntimeError("LLVM cannot write objects for this target");
  }
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

// Finds functions of the process that generated code calls.
class ProcessSymbols : public llvm::JITSymbolResolver {
 public:
  void lookup(const LookupSet& names, OnResolvedFunction done) override {
    LookupResult result;
    for (llvm::StringRef name : names) {
      void* address = find_symbol(name.str());
      if (!address) {
        done(llvm::make_error<llvm::StringError>("no symbol " + name.str(), llvm::inconvertibleErrorCode()));
        return;
      }
      result[name] =
          llvm::JITEvaluatedSymbol(reinterpret_cast<uintptr_t>(address), llvm::JITSymbolFlags::Exported);
    }
    done(std::move(result));
  }
  llvm::Expected<LookupSet> getResponsibilitySet(const LookupSet&) override { return LookupSet(); }
};

// Loaded code; freed with the last artifact that uses it.
struct LoadedCode {
  llvm::SectionMemoryManager memory;
};

// The first artifact has the object of them all.
void load_object(std::span<target::CpuArtifact> artifacts) {
  const target::CpuArtifact& first = artifacts.front();
  auto code = std::make_shared<LoadedCode>();
  ProcessSymbols symbols;
  llvm::RuntimeDyld loader(code->memory, symbols);
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(first.object, first.name));
  if (!object) throw RuntimeError("object of " + first.name + ": " + llvm::toString(object.takeError()));
  loader.loadObject(**object);
  loader.resolveRelocations();
  std::string problem;
  if (loader.hasError()) throw RuntimeError("loading " + first.name + ": " + loader.getErrorString().str());
  if (code->memory.finalizeMemory(&problem)) throw RuntimeError("loading " + first.name + ": " + problem);
  for (target::CpuArtifact& artifact : artifacts) {
    void* entry = reinterpret_cast<void*>(loader.getSymbol(artifact.name).getAddress());
    if (!entry) throw RuntimeError("loading " + artifact.name + ": it has no entry of that name");
    artifact.entry = reinterpret_cast<target::CpuEntry>(entry);
    artifact.code = std::shared_ptr<const void>(code, entry);
  }
}

}  // namespace

std::string name() { return "llvm " LLVM_VERSION_STRING; }

Result<std::string> emit(const loop::Kernel& kernel, const target::CpuTarget& target) {
  Module module;
  Result<Emitted> emitted = emit_kernel(kernel, target, module);
  if (!emitted) return Unsupported{emitted.reason()};
  return module.to_text();
}

Result<std::vector<target::CpuArtifact>> compile(std::span<const loop::Kernel* const> kernels,
                                                 const target::CpuTarget& target,
                                                 const CompileOptions& options, double* emit_seconds) {
  const auto start = std::chrono::steady_clock::now();
  Module emitted;
  std::vector<target::CpuArtifact> artifacts;
  for (const loop::Kernel* kernel : kernels) {
    Result<Emitted> one = emit_kernel(*kernel, target, emitted);
    if (!one) return Unsupported{one.reason()};
    target::CpuArtifact& artifact = artifacts.emplace_back();
    artifact.name = kernel->name;
    artifact.grid = one->grid;
    artifact.scratch_bytes = one->scratch_bytes;
  }
  std::string text = emitted.to_text();
  if (emit_seconds)
    *emit_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  llvm::TargetMachine& machine = machine_of_thread(target, options.level);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = parse(context, text, artifacts.front().name);
  module->setTargetTriple(kTriple);
  module->setDataLayout(machine.createDataLayout());
  if (options.level != OptLevel::O0) optimize(*module, machine);

  artifacts.front().object = generate_object(*module, machine);
  if (options.keep_text) artifacts.front().text = std::move(text);
  load(artifacts);
  return artifacts;
}

Result<target::CpuArtifact> compile(const loop::Kernel& kernel, const target::CpuTarget& target,
                                    const CompileOptions& options) {
  const loop::Kernel* const one = &kernel;
  auto artifacts = compile(std::span(&one, 1), target, options);
  if (!artifacts) return Unsupported{artifacts.reason()};
  return std::move(artifacts->front());
}

void load(std::span<target::CpuArtifact> artifacts) {
  while (!artifacts.empty()) {
    auto next = std::find_if(artifacts.begin() + 1, artifacts.end(),
                             [](const target::CpuArtifact& a) { return !a.object.empty(); });
    auto count = static_cast<size_t>(next - artifacts.begin());
    load_object(artifacts.first(count));
    artifacts = artifacts.subspan(count);
  }
}

}  // namespace kerf::codegen
