"""Compiles the kernels in src/device to PTX, or checks that the PTX beside them is what they compile to.

    pip install nvidia-cuda-nvrtc-cu12==12.0.140
    python ptx.py           # writes src/device/*.ptx
    python ptx.py --check   # compares, and says which file differs

No GPU is needed. The PTX is for an old architecture and an old driver: the driver of the machine compiles it further.
The compiler's version is fixed, because another one writes other PTX.
"""

import ctypes
import pathlib
import sys

ARCHITECTURE = "compute_70"
FOLDER = pathlib.Path(__file__).parent / "src" / "device"
NO_COMPILER = 77  # the exit status where there is nothing to compile with


def compiler():
    try:
        import nvidia.cuda_nvrtc
    except ImportError:
        print("NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12==12.0.140", file=sys.stderr)
        raise SystemExit(NO_COMPILER) from None
    folder = pathlib.Path(list(nvidia.cuda_nvrtc.__path__)[0]) / "lib"
    library = ctypes.CDLL(str(next(folder.glob("libnvrtc.so.*"))))
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    if (major.value, minor.value) != (12, 0):
        print(f"NVRTC {major.value}.{minor.value} writes other PTX than 12.0", file=sys.stderr)
        raise SystemExit(NO_COMPILER)
    return library


def compile_to_ptx(nvrtc, source):
    program = ctypes.c_void_p()
    text = source.read_bytes()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, source.name.encode(), 0, None, None)
    options = [f"--gpu-architecture={ARCHITECTURE}", f"--include-path={FOLDER}", "--std=c++17"]
    array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    if log.value.strip():
        print(log.value.decode(), file=sys.stderr)
    if status != 0:
        raise SystemExit(f"{source.name} does not compile")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()


def main():
    nvrtc, check = compiler(), "--check" in sys.argv[1:]
    for source in sorted(FOLDER.glob("*.cu")):
        ptx, target = compile_to_ptx(nvrtc, source), source.with_suffix(".ptx")
        if not check:
            target.write_text(ptx)
        elif not target.exists() or target.read_text() != ptx:
            raise SystemExit(f"{target.name} is not what {source.name} compiles to: run ptx.py")


if __name__ == "__main__":
    main()
