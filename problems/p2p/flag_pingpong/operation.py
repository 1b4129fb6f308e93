"""Two ranks transform a token in turn; each step needs the token of the step before."""
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


def operation(keys: torch.Tensor, out: torch.Tensor) -> None:
    """keys: [rounds, 32], out: [rounds]; words of 32 bits in int64."""
    rank, rounds = dist.get_rank(), out.shape[0]
    token = torch.zeros(1, dtype=torch.int64, device=keys.device)
    for step in range(2 * rounds):
        if step % 2 == rank:
            if step > 0:
                dist.recv(token, src=1 - rank)
            token = (mix((token + keys[step // 2]) & MASK).sum() & MASK).reshape(1)
            out[step // 2] = token[0]
            if step + 1 < 2 * rounds:
                dist.send(token, dst=1 - rank)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for rounds in (16, 256):
        keys = torch.randint(0, 2**32, (rounds, 32), dtype=torch.int64, device="cuda")
        operation(keys, torch.empty(rounds, dtype=torch.int64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
