"""The product of slices of the inner dimension for a few tokens, then an all-reduce."""
import torch
import torch.distributed as dist


def operation(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> None:
    """a: [64, k], b: [n, k] in float16; c: [tokens, n] in float32. Rows of a beyond c's do not count."""
    torch.matmul(a[: c.shape[0]].float(), b.float().t(), out=c)
    dist.all_reduce(c)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for tokens in (2, 8):
        a = torch.randint(-8, 9, (64, 256), device="cuda").half()
        b = torch.randint(-8, 9, (128, 256), device="cuda").half()
        operation(a, b, torch.empty(tokens, 128, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
