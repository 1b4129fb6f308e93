"""Newton-Schulz steps on a matrix whose columns are sharded: Gram matrices are summed over ranks."""
import torch
import torch.distributed as dist


def operation(g: torch.Tensor, steps: int, y: torch.Tensor) -> None:
    """g, y: [32, n] in float32, this rank's columns."""
    norm = g.square().sum()
    dist.all_reduce(norm)
    x = g / norm.sqrt()
    for _ in range(steps):
        gram = x @ x.t()
        dist.all_reduce(gram)
        x = 3.4445 * x + (-4.775 * gram + 2.0315 * gram @ gram) @ x
    y.copy_(x)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for steps in (1, 3, 5):
        g = torch.rand(32, 64, device="cuda") * 2 - 1
        operation(g, steps, torch.empty_like(g))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
