"""Three small gradients of low-rank adapters, summed over ranks."""
import torch
import torch.distributed as dist


def operation(grads: list[torch.Tensor], sums: list[torch.Tensor]) -> None:
    """grads: gate [low, wide], up [low, wide], down [narrow, low]; sums: of the same shapes."""
    for grad, total in zip(grads, sums):
        total.copy_(grad)
        dist.all_reduce(total, op=dist.ReduceOp.SUM)


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for low, wide, narrow in ((4, 128, 64), (8, 256, 128)):
        shapes = ((low, wide), (low, wide), (narrow, low))
        grads = [torch.randn(shape, device="cuda") for shape in shapes]
        operation(grads, [torch.empty_like(grad) for grad in grads])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
