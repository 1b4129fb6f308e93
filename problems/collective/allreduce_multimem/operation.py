"""All-reduce of bf16: every rank's `out` is the sum of all ranks' `inp`, added up in float32."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    total = inp.float()
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    out.copy_(total)  # rounded to bf16 once


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (16384, 65536, 262144):
        inp = torch.randn(n, dtype=torch.bfloat16, device="cuda")
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
