"""An all-gather of words and an all-reduce of words modulo 2^32, one after the other."""
import torch
import torch.distributed as dist


def gather(a: torch.Tensor, all_words: torch.Tensor) -> None:
    """a: [n], all_words: [world, n]; words of 32 bits in int64."""
    dist.all_gather_into_tensor(all_words.view(-1), a)


def reduce(b: torch.Tensor, total: torch.Tensor) -> None:
    """b, total: [m]; words of 32 bits in int64."""
    total.copy_(b)
    dist.all_reduce(total)
    total &= 0xFFFFFFFF


def operation(a: torch.Tensor, b: torch.Tensor, all_words: torch.Tensor, total: torch.Tensor) -> None:
    gather(a, all_words)
    reduce(b, total)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for n, m in ((2048, 512), (12288, 2048)):
        a = torch.randint(0, 2**32, (n,), dtype=torch.int64, device="cuda")
        b = torch.randint(0, 2**32, (m,), dtype=torch.int64, device="cuda")
        gathered = a.new_empty(dist.get_world_size(), n)
        operation(a, b, gathered, torch.empty_like(b))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
