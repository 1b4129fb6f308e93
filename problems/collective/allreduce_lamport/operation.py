"""All-reduce of small f16 vectors, the activations of a few tokens."""
import torch
import torch.distributed as dist


def operation(inp: torch.Tensor, out: torch.Tensor) -> None:
    """inp, out: [n] f16; sums in fp32."""
    total = inp.float()
    dist.all_reduce(total)
    out.copy_(total)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n in (512, 2048):
        inp = torch.randn(n, device="cuda").half()
        operation(inp, torch.empty_like(inp))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
