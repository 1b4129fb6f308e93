"""Rounds of one global sum each; its terms need the sum of the round before."""
import torch
import torch.distributed as dist

MASK = 0xFFFFFFFF


def mix(x: torch.Tensor) -> torch.Tensor:
    """Words of 32 bits, kept in int64. Products are made of halves, so that nothing overflows."""

    def times(a: torch.Tensor, b: int) -> torch.Tensor:
        return ((a >> 16) * b % 65536 * 65536 + (a & 0xFFFF) * b) & MASK

    x = x ^ (x >> 16)
    x = times(x, 0x85EBCA6B)
    x = x ^ (x >> 13)
    x = times(x, 0xC2B2AE35)
    return x ^ (x >> 16)


def operation(x: torch.Tensor, out: torch.Tensor) -> None:
    """x: [n], out: [rounds]; words of 32 bits in int64."""
    total = torch.zeros(1, dtype=torch.int64, device=x.device)
    for i in range(out.shape[0]):
        total = mix((x + total) & MASK).sum().reshape(1)
        dist.all_reduce(total)
        total &= MASK
        out[i] = total[0]


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n, rounds in ((1024, 8), (4096, 8)):
        x = torch.randint(0, 2**32, (n,), dtype=torch.int64, device="cuda")
        operation(x, torch.empty(rounds, dtype=torch.int64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
